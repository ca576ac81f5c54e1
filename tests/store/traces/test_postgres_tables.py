from __future__ import annotations

from contextlib import closing
from pathlib import Path

from isthmus.ports.packed import pack_all
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Options, connect
from isthmus.store.traces.postgres_tables import PostgresTables
from isthmus.store.traces.writes import Memory, forget, keep, prune
from postgres import database_of
from traced import traced


def opened(folder: Path) -> PostgresTables:
    options = Options(Address(database_of(folder)))
    return PostgresTables(connect(options))


def test_names_that_are_no_text_there_cost_nobody_a_trace(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as tables:
        for times in range(2):
            keep(tables, Memory(), pack_all([traced(str(times), model="a\0b" + "x" * 9000), traced(f"{times} too")]))
        assert tables.execute("SELECT count(*) FROM traces").fetchone()[0] == 4
        assert tables.execute("SELECT count(*) FROM kinds").fetchone()[0] == 2


def test_what_is_counted_is_nothing_when_everything_is_gone(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as tables:
        keep(tables, Memory(), pack_all([traced(str(number)) for number in range(20)]))
        forget(tables, "local", "resp_3")
        assert tables.measure() > 0
        while prune(tables, None, 0, 7):
            pass
        assert tables.measure() == 0


def test_whoever_empties_the_state_only_has_it_counted_anew(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as tables:
        keep(tables, Memory(), pack_all([traced(str(number)) for number in range(3)]))
        counted = tables.measure()
        tables.execute("DELETE FROM trace_state")
        keep(tables, Memory(), pack_all([]))
        assert (tables.last()[0], tables.measure()) == (3, counted)
        keep(tables, Memory(), pack_all([traced("next")]))
        assert tables.last()[0] == 4
