"""A cluster's note that it has claimed a bucket, in memory."""


class ClaimNote:
    """`ClusterNote`; `failure` is what the store says meanwhile."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self._is_noted = False

    async def is_noted(self) -> bool:
        if self.failure is not None:
            raise self.failure
        return self._is_noted

    async def note(self) -> None:
        if self.failure is not None:
            raise self.failure
        self._is_noted = True
