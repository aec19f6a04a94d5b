"""Endpoint discovery for fast ranged reads, by means of botocore.

Botocore knows all of S3's addresses (regions, path style, FIPS, dual stack); a URL that it has
signed in advance shows which one it uses for the bucket. There are no fast reads where a signature
of another kind is needed (access points of several regions, S3 Express) or a proxy.
"""

import ssl
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from config.object_store import StoreSettings
from storage.environment.clock import Clock
from tiered.object_store.base import StoreDeadlines
from tiered.object_store.s3.credentials import CredentialsSource
from tiered.object_store.s3.ranged_get import Endpoint, RangedReader
from tiered.object_store.statistics import StoreStatistics

if TYPE_CHECKING:
    from aiobotocore.session import AioSession

PROBE: Final = "probe"


async def open_ranged_reader(
    client: Any,
    session: "AioSession",
    settings: StoreSettings,
    deadlines: StoreDeadlines,
    credentials: CredentialsSource,
    clock: Clock,
    statistics: StoreStatistics,
) -> RangedReader | None:
    """A reader for the bucket, None where only the library can reach it."""
    from botocore.httpsession import get_cert_path
    from botocore.utils import get_environ_proxies

    if settings.bucket.startswith("arn:") or settings.bucket.endswith("--x-s3"):
        return None
    signed = await client.generate_presigned_url(
        "get_object", Params={"Bucket": settings.bucket, "Key": PROBE}
    )
    url = urlsplit(signed)
    if url.hostname is None or not url.path.endswith("/" + PROBE) or get_environ_proxies(signed):
        return None
    tls = None
    if url.scheme == "https":
        bundle = session.get_config_variable("ca_bundle")
        tls = ssl.create_default_context(cafile=get_cert_path(bundle or True))
    endpoint = Endpoint(
        url.hostname,
        url.port,
        url.path[: -len(PROBE)],
        client.meta.region_name,
        tls,
    )
    return RangedReader(
        endpoint,
        credentials,
        clock,
        statistics,
        deadlines=deadlines,
        max_connections=settings.max_connections,
    )
