"""Access of deltalake to a table's store."""

from pipeline.lake.settings.config import StoreConfig


def storage_options(location: str, store: StoreConfig) -> dict[str, str]:
    """Options by which deltalake reaches the table's store; secrets included."""
    if not location.startswith("s3://"):
        return {}
    options = {"AWS_REGION": store.region or "us-east-1"}
    if store.endpoint:
        options["AWS_ENDPOINT_URL"] = store.endpoint
        if store.endpoint.startswith("http://"):
            options["AWS_ALLOW_HTTP"] = "true"
    if not store.path_style and store.endpoint:
        options["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = "true"
    access = access_keys(store)
    if access is not None:
        options["AWS_ACCESS_KEY_ID"], options["AWS_SECRET_ACCESS_KEY"], token = access
        if token:
            options["AWS_SESSION_TOKEN"] = token
    return options


def access_keys(store: StoreConfig) -> tuple[str, str, str | None] | None:
    """Key id, secret and token as the settings or their file say; None: the machine's own way."""
    if store.secret_access_key is not None:
        return store.access_key_id, store.secret_access_key.get_secret_value(), None
    if store.credentials_file or store.profile:
        from pipeline.lake.stores.s3_store import botocore_session

        found = botocore_session(store).get_credentials()
        if found is not None:
            frozen = found.get_frozen_credentials()
            return str(frozen.access_key), str(frozen.secret_key), frozen.token
    return None
