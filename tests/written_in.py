"""Texts of many kinds, for whoever has to say how long a text is: in twenty-six languages, as code, as data."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Final

_LANGUAGES: Final = {
    "english": "The boat leaves at nine, and we will wait for you by the old bridge until the bells ring.",
    "german": "Das Boot fährt um neun Uhr ab, und wir warten an der Eisenbahnbrückenunterführung auf dich.",
    "french": "Le bateau part à neuf heures, et nous t'attendrons près du vieux pont jusqu'à la tombée de la nuit.",
    "spanish": "El barco sale a las nueve y te esperaremos junto al puente viejo hasta que suenen las campanas.",
    "polish": "Łódź odpływa o dziewiątej, będziemy czekać na ciebie przy starym moście aż zabrzmią dzwony.",
    "czech": "Loď odplouvá v devět hodin a budeme na tebe čekat u starého mostu, dokud nezazní zvony.",
    "hungarian": "A hajó kilenckor indul, és az öreg hídnál várunk rád, amíg meg nem szólalnak a harangok.",
    "finnish": "Vene lähtee yhdeksältä, ja odotamme sinua vanhan sillan luona kunnes kellot soivat.",
    "turkish": "Tekne dokuzda kalkıyor, çanlar çalana kadar seni eski köprünün yanında bekleyeceğiz.",
    "vietnamese": "Thuyền rời bến lúc chín giờ, chúng tôi sẽ đợi bạn bên cây cầu cũ cho đến khi chuông reo.",
    "russian": "Лодка отходит в девять, и мы будем ждать тебя у старого моста, пока не зазвонят колокола.",
    "ukrainian": "Човен відпливає о дев'ятій, і ми чекатимемо на тебе біля старого мосту, доки не задзвонять дзвони.",
    "greek": "Το πλοίο φεύγει στις εννέα και θα σε περιμένουμε δίπλα στην παλιά γέφυρα.",
    "hebrew": "הסירה יוצאת בתשע ונחכה לך ליד הגשר הישן עד שיצלצלו הפעמונים.",
    "arabic": "يغادر القارب في التاسعة وسننتظرك عند الجسر القديم حتى تدق الأجراس.",
    "persian": "قایق ساعت نه حرکت می‌کند و ما کنار پل قدیمی منتظر تو می‌مانیم.",
    "hindi": "नाव नौ बजे निकलती है और हम पुराने पुल के पास तुम्हारा इंतज़ार करेंगे।",
    "bengali": "নৌকা নয়টায় ছাড়ে এবং আমরা পুরোনো সেতুর কাছে তোমার জন্য অপেক্ষা করব।",
    "tamil": "படகு ஒன்பது மணிக்குப் புறப்படும், பழைய பாலத்தின் அருகில் உனக்காகக் காத்திருப்போம்.",
    "thai": "เรือออกเวลาเก้าโมง และเราจะรอคุณที่สะพานเก่าจนกว่าระฆังจะดัง",
    "georgian": "ნავი ცხრა საათზე გადის და ძველ ხიდთან დაგელოდებით.",
    "armenian": "Նավակը մեկնում է ժամը իննին, և մենք կսպասենք քեզ հին կամրջի մոտ։",
    "amharic": "ጀልባው በዘጠኝ ሰዓት ይነሳል እና በአሮጌው ድልድይ አጠገብ እንጠብቅሃለን።",
    "chinese": "船九点开，我们会在老桥边等你，直到钟声响起。",
    "japanese": "船は九時に出ます。鐘が鳴るまで古い橋のそばであなたを待っています。",
    "korean": "배는 아홉 시에 떠나고, 우리는 종이 울릴 때까지 오래된 다리 옆에서 기다릴 거예요.",
}
_CODE: Final = '''def merge(left: list[int], right: list[int]) -> list[int]:
    """Two sorted lists as one."""
    merged: list[int] = []
    while left and right:
        merged.append(left.pop(0) if left[0] <= right[0] else right.pop(0))
    return merged + left + right


if (!window.__app?.ready) { for (let i = 0; i < items.length; ++i) { queue.push(() => render(items[i], {n: i + 1})); } }
SELECT u.id, count(*) AS n FROM users u JOIN orders o ON o.user_id = u.id WHERE o.total > 19.99 GROUP BY u.id;
'''
_RECORD: Final = {"id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890", "at": "2026-11-17T02:34:56.789Z", "n": [1, 22.5, -3e-7]}


def written(kind: str) -> str:
    match kind:
        case "code":
            return _CODE
        case "json":
            return json.dumps([{**_RECORD, "index": index, "ok": index % 2 == 0} for index in range(8)], indent=2)
        case "compact json":
            return json.dumps([{**_RECORD, "index": index, "tags": None} for index in range(8)], separators=(",", ":"))
        case "digits":
            return " ".join(str(number**7) for number in range(100, 160))
        case "base64":
            return base64.b64encode(b"".join(hashlib.sha256(bytes([n])).digest() for n in range(20))).decode()
        case "hex":
            return "\n".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(12))
        case "shouting":
            return _LANGUAGES["english"].upper() + " WARNING: DO_NOT_TOUCH_THIS_CONSTANT = TRUE;"
        case "emoji":
            return "Great 🎉🎉 see you 👩‍👩‍👧‍👦 at the 🏖️ tomorrow ❤️🇫🇷 ✅ → ½ ∑ √ ≠ ∞ «ok» “yes” …"
        case "table":
            return "\n".join(f"| {n:>4} | {'x' * (n % 7):<8} | {n / 3:.5f} |" for n in range(30))
        case "paths":
            return "\n".join(
                f"/usr/local/lib/python3.{n}/site-packages/__pycache__/x_{n}.cpython-3{n}.pyc" for n in range(9)
            )
        case _:
            return _LANGUAGES[kind]


KINDS: Final = (
    *_LANGUAGES,
    *("code", "json", "compact json", "digits", "base64", "hex", "shouting", "emoji", "table", "paths"),
)
