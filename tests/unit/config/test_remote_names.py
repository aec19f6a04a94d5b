"""Settings whose names are not fixed are moved to fixed ones."""

from config.load import load
from config.remote_kinds import KeyFiles
from config.remote_names import KEY_FILES, Move, moves

PAIRS = "rsm.config.encryption.key.pairs"


def test_other_prefixes_are_honoured() -> None:
    """Kafka lets them be chosen; the settings of Kafka itself do not move."""
    given = {
        "remote.log.storage.manager.impl.prefix": "remote.log.storage.",
        "remote.log.storage.chunk.size": "5",
        "remote.log.metadata.manager.impl.prefix": "m.",
        "m.remote.log.metadata.topic.num.partitions": "7",
        "remote.log.storage.system.enable": "true",
        "other": "1",
    }
    assert {move.old: (move.new, move.text) for move in moves(given)} == {
        "remote.log.storage.chunk.size": ("rsm.config.chunk.size", "5"),
        "m.remote.log.metadata.topic.num.partitions": (
            "rlmm.config.remote.log.metadata.topic.num.partitions",
            "7",
        ),
    }


def test_usual_prefixes_move_nothing() -> None:
    """Nor does an empty one."""
    given = {"remote.log.storage.manager.impl.prefix": " ", "rsm.config.chunk.size": "5"}
    assert moves(given) == []


def test_key_files_are_gathered() -> None:
    """Aiven's name for each file is stronger than the list."""
    given = {
        f"{PAIRS}.a.b.public.key.file": " /p ",
        f"{PAIRS}.a.b.private.key.file": "/q",
        KEY_FILES: "a.b.public=/old, c.public=/c",
    }
    found = moves(given)
    assert [move.old for move in found] == list(given)[:2]
    assert found[-1] == Move(
        f"{PAIRS}.a.b.private.key.file",
        KEY_FILES,
        "c.public=/c,a.b.public=/p,a.b.private=/q",
    )


def test_a_file_of_settings_may_use_all_of_it() -> None:
    """The values arrive at the fixed keys, with where they came from."""
    text = (
        "remote.log.storage.manager.impl.prefix=x.\n"
        "x.chunk.size=1000\n"
        "x.encryption.key.pairs=k1\n"
        "x.encryption.key.pairs.k1.public.key.file=/k1.pub\n"
    )
    loaded = load(config_file="s.properties", read_file=lambda _: text.encode())
    assert loaded.broker.rsm_config_chunk_size == 1000
    assert loaded.broker.rsm_config_encryption_key_pairs_files == {"k1": KeyFiles("/k1.pub", "")}
    origins = {setting.row.name: setting.origin for setting in loaded.settings}
    assert origins["rsm.config.chunk.size"] == "s.properties:2"
    assert origins[KEY_FILES] == "s.properties:4"
