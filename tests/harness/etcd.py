"""An etcd server for tests, or a skip that says why there is none; and a store on it."""

import asyncio
import json
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import pytest

from bench.etcd_server import NO_ETCD, find_etcd
from broker.controller.store.metadata_store import StoreUnavailableError

if TYPE_CHECKING:
    from broker.controller.store.etcd.access import EtcdAccess
    from broker.controller.store.etcd.etcd_store import EtcdStore

START_S: Final = 60.0


def etcd_or_skip() -> str:
    """The server's program; without one the test is skipped, and says what to do."""
    program = find_etcd()
    if program is None:
        pytest.skip(NO_ETCD)
    return program


def post(endpoint: str, call: str, body: str, token: str = "") -> bytes:
    """By etcd's JSON gateway, which only tests use, to a server that may still be starting."""
    url, begin = f"http://{endpoint}/v3/{call}", time.monotonic()
    request = urllib.request.Request(url, body.encode(), {"Authorization": token} if token else {})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                assert response.status == HTTPStatus.OK
                answer: bytes = response.read()
                return answer
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionError) or time.monotonic() - begin > START_S:
                raise
            time.sleep(0.05)


def enable_authentication(endpoint: str) -> None:
    """Let in nobody but "root", with the password "sesame"."""
    post(endpoint, "auth/user/add", '{"name": "root", "password": "sesame"}')
    post(endpoint, "auth/user/grant", '{"user": "root", "role": "root"}')
    post(endpoint, "auth/enable", "{}")


def change_password(endpoint: str, before: str, after: str) -> None:
    """Of "root"; tokens that were given for the former password end."""
    asked = json.dumps({"name": "root", "password": before})
    token = json.loads(post(endpoint, "auth/authenticate", asked))["token"]
    wanted = json.dumps({"name": "root", "password": after})
    post(endpoint, "auth/user/changepw", wanted, token)


async def open_etcd(access: "EtcdAccess", *, floor_revision: int = 0) -> "EtcdStore":
    """A store on a server that may still be starting."""
    from broker.controller.store.etcd.etcd_store import EtcdStore

    async with asyncio.timeout(START_S):
        while True:
            try:
                return await EtcdStore.open(access, floor_revision=floor_revision)
            except StoreUnavailableError:
                await asyncio.sleep(0.05)
