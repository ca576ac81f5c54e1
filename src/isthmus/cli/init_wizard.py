"""The questions of `isthmus init`.

In: a console, the environment, the answers that flags already gave. Out: `Answers`. Pressing Enter all the way through
gives a configuration that works; keys are read from the environment at run time unless one is pasted, unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.prompt import Confirm, IntPrompt, Prompt
from rich.table import Table

from isthmus.addresses import is_local
from isthmus.bridge.resolve import nearest_name, split_reference
from isthmus.cli.init_file import Answers, ProviderAnswer
from isthmus.cli.layout import show_table
from isthmus.cli.terminal import put
from isthmus.config.find import FILE_NAME, config_folder
from isthmus.config.known import AMBIENT, CODEX, DEMO, KnownProvider, find_known, known_names, usable_names
from isthmus.errors import ConfigError
from isthmus.providers.load import provider_names
from isthmus.providers.schema import COMPUTED

ANY_SERVER: Final = "openai-compatible"
_EXAMPLE_URL: Final = "http://127.0.0.1:8080/v1"


@dataclass(frozen=True, slots=True)
class Wizard:
    console: Console
    environ: Mapping[str, str]
    cwd: Path
    folders: tuple[Path, ...] = ()
    """The user's own provider files."""

    def ask_path(self) -> Path:
        choices = (config_folder(self.environ) / FILE_NAME, self.cwd / FILE_NAME)
        self.console.print("[bold]Where should the configuration be saved?[/]")
        put(self.console, f"  1  {escape(str(choices[0]))}  [dim]found from every folder[/]")
        put(self.console, f"  2  {escape(str(choices[1]))}  [dim]found from this folder[/]")
        answer = Prompt.ask("1, 2 or a path", console=self.console, default="1").strip()
        return choices[int(answer) - 1] if answer in ("1", "2") else self.cwd / Path(answer).expanduser()

    def ask(self, given: Answers, *, port_given: bool) -> Answers:
        """All questions to which `given` has no answer yet."""
        providers = given.providers or self._ask_providers()
        default = given.default or self._ask_default(providers)
        catch_all = given.catch_all and bool(default)
        if catch_all and not given.default:
            catch_all = Confirm.ask(
                f"Answer every other model name with [cyan]{escape(default)}[/] too?",
                console=self.console,
                default=True,
            )
        port = given.port if port_given else self._ask_port(given.port)
        store = given.store or self._ask_store()
        return Answers(providers, default, catch_all, given.host, port, store)

    def _ask_providers(self) -> tuple[ProviderAnswer, ...]:
        names = choosable_providers(self.folders)
        known = {name: find_known(name, self.folders) for name in names}
        self._show_providers(known)
        found = [name for name in names if self._is_meant(known[name])]
        while True:
            answer = Prompt.ask(
                "Which ones? Numbers, names or NAME=URL, with commas; [dim]-[/] for the demo only",
                console=self.console,
                default=",".join(found) or "-",
            )
            try:
                chosen = parse_choice(answer, names)
            except ConfigError as error:
                put(self.console, f"[red]{escape(error.message)}[/]")
                continue
            return tuple(self._ask_provider(provider) for provider in chosen)

    def _show_providers(self, known: Mapping[str, KnownProvider]) -> None:
        table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
        for column in ("", "provider", "", "key"):
            table.add_column(column)
        for number, (name, provider) in enumerate(known.items(), start=1):
            key = provider.key_variables[0] if provider.key_variables else COMPUTED.get(provider.auth, "none needed")
            if self._has_key(provider):
                key = f"[green]{key} is set[/]"
            elif provider.key_variables and not provider.needs_key:
                key = f"[dim]{key}, if it wants one[/]"
            table.add_row(str(number), f"[cyan]{name}[/]", escape(provider.title), key)
        self.console.print()
        show_table(self.console, table, indent=0)

    def _is_meant(self, provider: KnownProvider) -> bool:
        """Whether the environment speaks of it, and of nothing else."""
        has_address = all(self.environ.get(variable, "").strip() for variable in provider.variables)
        own = [variable for variable in provider.key_variables if variable not in AMBIENT]
        return provider.needs_key and has_address and any(self.environ.get(variable, "").strip() for variable in own)

    def _has_key(self, provider: KnownProvider) -> bool:
        return any(self.environ.get(variable, "").strip() for variable in provider.key_variables)

    def _ask_provider(self, chosen: ProviderAnswer) -> ProviderAnswer:
        """Address and key of one provider."""
        uses = chosen.uses or chosen.name
        name, base_url, endpoint = chosen.name, chosen.base_url, ""
        self.console.print(f"\n[bold]{escape(name)}[/]")
        known = find_known(uses, self.folders)
        if not base_url and is_local(known.base_url):
            if name == ANY_SERVER:
                name = Prompt.ask("A name for this server", console=self.console, default="mine").strip() or "mine"
            suggested = known.base_url or _EXAMPLE_URL
            answer = Prompt.ask("Its address", console=self.console, default=suggested).strip()
            base_url = "" if answer == known.base_url and uses != ANY_SERVER else answer
        elif not base_url and known.alternatives:
            choices = ["standard", *known.alternatives]
            answer = Prompt.ask("Which address", console=self.console, choices=choices, default="standard")
            endpoint = "" if answer == "standard" else answer
            known = find_known(uses, self.folders, endpoint)
        variables = {} if base_url else {variable: self._ask_variable(variable) for variable in known.variables}
        key = self._ask_key(known)
        return ProviderAnswer(name, uses if uses != name else "", base_url, endpoint, key, variables)

    def _ask_variable(self, variable: str) -> str:
        """What the address is written with: a name, or a reference to the variable."""
        question = f"{variable}: Enter to read it from the environment at run time, or write it"
        answer = Prompt.ask(question, console=self.console, default="", show_default=False).strip()
        return answer.replace("${", "$${") or f"${{{variable}}}"

    def _ask_key(self, known: KnownProvider) -> str:
        """A reference to a variable, or a pasted key; nothing where the provider takes no key."""
        if not known.key_variables:
            return ""
        reference = next((v for v in known.key_variables if self.environ.get(v, "").strip()), "")
        reference = reference or (known.key_variables[0] if known.needs_key else "")
        rest = f"Enter to read ${reference} at run time" if reference else "Enter for none"
        question = f"Key: {rest}, or paste it (not shown)"
        while True:
            pasted: str = typer.prompt(question, default="", hide_input=True, show_default=False).strip()
            if pasted.isascii() and pasted.isprintable() and " " not in pasted:
                break
            self.console.print("[red]A key has no spaces and only plain characters; was it copied whole?[/]")
        return pasted.replace("${", "$${") or (f"${{{reference}}}" if reference else "")

    def _ask_default(self, providers: Sequence[ProviderAnswer]) -> str:
        names = [provider.name for provider in providers] or [DEMO]
        suggestion = default_model(providers, self.folders)
        self.console.print()
        while True:
            hint = "Default model, as provider/model" + ("" if suggestion else "; Enter for none")
            answer = Prompt.ask(hint, console=self.console, default=suggestion, show_default=bool(suggestion)).strip()
            sides = split_reference(answer)
            if not answer or (sides and sides[0] in (*names, DEMO)):
                return answer
            near = nearest_name(sides[0], names, likeness=0.6) if sides else None  # of a few, one is soon meant
            told = f"did you mean `{near}/{sides[1]}`?" if near and sides else f"write `{names[0]}/MODEL`"
            self.console.print(f"[red]{escape(f'`{answer}` names none of your providers; {told}')}[/]")

    def _ask_port(self, default: int) -> int:
        while not 0 <= (port := IntPrompt.ask("Port", console=self.console, default=default)) <= 65535:
            self.console.print("[red]A port is a number from 0 to 65535.[/]")
        return port

    def _ask_store(self) -> str:
        answer = Prompt.ask(
            "Keep responses on disk (sqlite) or in memory",
            console=self.console,
            choices=["sqlite", "memory"],
            default="sqlite",
        )
        return "memory:" if answer == "memory" else ""


def choosable_providers(folders: Sequence[Path]) -> list[str]:
    """What the wizard offers: all but the demo, which is always there."""
    files = provider_names(folders)
    return [name for name in known_names(folders) if name != DEMO and (name != CODEX or name in files)]


def parse_choice(text: str, names: Sequence[str]) -> list[ProviderAnswer]:
    """`1, groq, mine=http://…` → providers; `ConfigError` names what is wrong."""
    chosen: dict[str, ProviderAnswer] = {}
    for part in (part.strip() for part in text.split(",")):
        if part in ("", "-"):
            continue
        if part.isdecimal():
            if not 1 <= int(part) <= len(names):
                raise ConfigError(f"there is no number {part}; use 1 to {len(names)}")
            part = names[int(part) - 1]
        provider = parse_provider(part, names)
        chosen[provider.name] = provider
    return list(chosen.values())


def parse_provider(text: str, names: Sequence[str]) -> ProviderAnswer:
    """`deepseek`, or `mine=http://127.0.0.1:8080/v1` for any OpenAI-compatible server."""
    name, equals, url = (side.strip() for side in text.partition("="))
    if "/" in name or not name:
        raise ConfigError(f"`{text}` is no provider; write a name, or NAME=URL")
    known = name in names or name in usable_names()
    if equals:
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"`{text}` has no URL; write it as `{name}={_EXAMPLE_URL}`")
        return ProviderAnswer(name, "" if known else ANY_SERVER, url)
    if not known:
        near = nearest_name(name, names)
        told = f"did you mean `{near}`?" if near else f"for another server write `{name}={_EXAMPLE_URL}`"
        raise ConfigError(f"there is no provider `{name}`; {told}")
    return ProviderAnswer(name)


def default_model(providers: Sequence[ProviderAnswer], folders: Sequence[Path]) -> str:
    """The default model of the first provider; the demo's if there is no provider."""
    if not providers:
        return f"{DEMO}/{find_known(DEMO).default_model or DEMO}"
    first = providers[0]
    model = find_known(first.uses or first.name, folders).default_model
    return f"{first.name}/{model}" if model else ""
