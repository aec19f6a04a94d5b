"""A batch query: planned on the driver, read on executors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from typing_extensions import override

from pipeline.plan.piece import Piece
from pipeline.source.data_loss import LOG, PlanLosses, warn_of_options
from pipeline.source.executor import rows_of
from pipeline.source.filters import Chosen, choose
from pipeline.source.options.options import SourceOptions
from pipeline.source.partition_view import OffsetSpan
from pipeline.source.planner import Planner
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    """Rows between two offsets of each partition."""

    def __init__(
        self,
        options: SourceOptions,
        new_planner: Callable[[SourceOptions], Planner] = Planner,
    ) -> None:
        """Open nothing yet: executors get a copy."""
        self._options = options
        self._new_planner = new_planner
        self._chosen = Chosen()

    @override
    def partitions(self) -> Sequence[InputPartition]:
        """One a piece; nothing has been read when they are known."""
        warn_of_options(self._options.without_effect)
        losses = PlanLosses(fail=self._options.fail_on_data_loss)
        with self._new_planner(self._options) as planner:
            views = planner.view()
            spans = self._filtered(planner.batch_spans(views, losses))
            if self._chosen.time_ms is not None:
                spans = planner.since(views, spans, self._chosen.time_ms)
            plan = planner.plan(views, spans, losses)
        losses.warn()
        return [InputPartition(piece) for piece in plan.pieces]

    @override
    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """A piece's rows; none where Spark made up a partition because there was none."""
        piece: Piece | None = partition.value
        return rows_of(piece, self._options)

    def _filtered(
        self, spans: Mapping[TopicPartition, OffsetSpan]
    ) -> dict[TopicPartition, OffsetSpan]:
        return {partition: self._chosen.span(partition, span) for partition, span in spans.items()}


class FilteringBatchReader(BatchReader):
    """A batch reader with `pushFilters`: Spark recognises one by its method."""

    @override
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take what chooses offsets; what is returned Spark evaluates itself.

        Spark 4.2 keeps the plan that follows for everything that is made of the same `load()`,
        also what has no filter (PythonScanBuilder.pushFilters: `ds.setReadInfo`).
        """
        self._chosen, rest = choose(filters)
        LOG.warning(
            "pushFilters: Spark keeps these filters for the whole DataFrame; "
            "call load() again for a query with other filters"
        )
        return rest
