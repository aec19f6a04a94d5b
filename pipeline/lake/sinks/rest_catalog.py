"""An Iceberg REST catalog as a job needs it: it answers in time, and what it has done stays done.

answer to a commit     what is known                             then
200                    it is there
409                    it is refused, or it is there and         checked by its snapshot: there,
                       something between has sent it twice       or a conflict
5xx, none in time      nothing                                   an error; the next view says

pyiceberg takes every 409 for a refusal and deletes the manifests that the commit would have had.
Where a proxy or a balancer repeats a request whose answer it lost, the second one is a 409 on the
first one's table: the snapshot there would have lost its files. So nothing is deleted here; what a
refused commit leaves is found as orphans.

Source: Iceberg, open-api/rest-catalog-open-api.yaml (updateTable); pyiceberg, table/__init__.py
(Transaction.commit_transaction).
"""

from typing import Any, Final

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import AddSnapshotUpdate, TableRequirement, TableUpdate
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from typing_extensions import override

from pipeline.lake.errors import CommitConflictError

CONNECT_TIMEOUT_S: Final = 10
READ_TIMEOUT_S: Final = 60
"""Between two pieces of an answer. A catalog that does not answer would else hold a job for ever:
the library waits without end."""


class JobRestCatalog(RestCatalog):
    """See the module."""

    @override
    def _create_session(self) -> Session:
        """The library's own, with deadlines; it has no setting for them."""
        session = super()._create_session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _InTime())
        return session

    @override
    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Commit, or find that it is there.

        Raises:
            CommitConflictError: It is not there, and was refused.
            CommitStateUnknownException: It is unknown.
        """
        try:
            answer: CommitTableResponse = super().commit_table(table, requirements, updates)
        except CommitFailedException as error:
            landed = self._landed(table, updates)
            if landed is None:
                raise CommitConflictError(f"{'.'.join(table.name())}: {error}") from error
            return landed
        return answer

    def _landed(self, table: Table, updates: tuple[TableUpdate, ...]) -> CommitTableResponse | None:
        """The table, if it has the snapshots of these updates; None too where they have none."""
        snapshots = [each.snapshot for each in updates if isinstance(each, AddSnapshotUpdate)]
        added = [snapshot.snapshot_id for snapshot in snapshots]
        if not added:
            return None
        found = self.load_table(table.name())
        metadata = found.metadata
        if any(metadata.snapshot_by_id(each) is None for each in added):
            return None
        known = {"metadata": metadata, "metadata-location": found.metadata_location}
        return CommitTableResponse.model_validate(known)


class _InTime(HTTPAdapter):
    """Has deadlines where a request names none."""

    @override
    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: dict[str, str] | None = None,
    ) -> Response:
        """Send it."""
        limits = timeout or (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
        return super().send(request, stream, limits, verify, cert, proxies)
