"""A bucket for a scenario, and how it is looked into."""

from typing import Any

from bench.s3_server import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY
from tests.system.tiered.remote_view import S3Bucket


def new_bucket(endpoint: str, bucket: str) -> S3Bucket:
    """Made, and seen from outside, past any proxy."""
    import botocore.session

    client: Any = botocore.session.get_session().create_client(
        "s3",
        region_name=REGION,
        endpoint_url=endpoint,
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
        config=botocore.config.Config(s3={"addressing_style": "path"}),
    )
    client.create_bucket(Bucket=bucket)
    return S3Bucket(client, bucket)
