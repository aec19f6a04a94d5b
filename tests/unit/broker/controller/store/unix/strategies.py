"""Any key, item, comparison, operation and response, for Hypothesis."""

from hypothesis import strategies as st

from broker.controller.store.metadata_store import (
    Compare,
    Delete,
    DeleteResponse,
    Event,
    EventKind,
    Get,
    GetResponse,
    KeyValue,
    Put,
    PutResponse,
    Relation,
    Target,
)

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.binary(max_size=60)
NUMBERS = st.integers(0, 2**64 - 1)
ITEMS = st.builds(KeyValue, KEYS, VALUES, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
ITEM_LISTS = st.lists(ITEMS, max_size=4).map(tuple)
COMPARES = st.one_of(
    st.builds(Compare, KEYS, st.just(Target.VALUE), st.sampled_from(Relation), VALUES),
    st.builds(
        Compare,
        KEYS,
        st.sampled_from([Target.VERSION, Target.CREATE_REVISION, Target.MOD_REVISION]),
        st.sampled_from(Relation),
        st.integers(-(2**63), 2**63 - 1),
    ),
)
OPERATIONS = st.one_of(
    st.builds(Put, KEYS, VALUES, NUMBERS),
    st.builds(Delete, KEYS, st.booleans()),
    st.builds(Get, KEYS, st.booleans()),
)
RESPONSES = st.one_of(
    st.builds(PutResponse, st.none() | ITEMS),
    st.builds(DeleteResponse, st.integers(0, 2**32 - 1)),
    st.builds(GetResponse, ITEM_LISTS),
)


def events(revision: int) -> st.SearchStrategy[Event]:
    """Changes of one revision."""
    return st.builds(
        Event,
        st.sampled_from(EventKind),
        KEYS,
        st.just(revision),
        st.none() | ITEMS,
        st.none() | ITEMS,
    )
