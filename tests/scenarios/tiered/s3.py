"""A bucket for a scenario: the settings that lead a broker there, and how it is looked into."""

from typing import Any

from tests.scenarios.tiered.remote_view import S3Bucket

REGION, KEY_ID, SECRET = "us-east-1", "varve-test", "varve-test-secret"


def store_settings(endpoint: str, bucket: str) -> dict[str, str]:
    """Of the broker; the endpoint may be a proxy that spoils things."""
    return {
        "rsm.config.storage.backend.class": "s3",
        "rsm.config.storage.s3.bucket.name": bucket,
        "rsm.config.storage.s3.region": REGION,
        "rsm.config.storage.s3.endpoint.url": endpoint,
        "rsm.config.storage.s3.path.style.access.enabled": "true",
        "rsm.config.storage.aws.access.key.id": KEY_ID,
        "rsm.config.storage.aws.secret.access.key": SECRET,
    }


def new_bucket(endpoint: str, bucket: str) -> S3Bucket:
    """Made, and seen from outside, past any proxy."""
    import botocore.session

    client: Any = botocore.session.get_session().create_client(
        "s3",
        region_name=REGION,
        endpoint_url=endpoint,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
        config=botocore.config.Config(s3={"addressing_style": "path"}),
    )
    client.create_bucket(Bucket=bucket)
    return S3Bucket(client, bucket)
