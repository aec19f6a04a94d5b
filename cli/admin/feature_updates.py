"""UpdateFeatures with what the broker says of it.

The client library raises an error for the code of an answer, and drops the sentence beside it,
which alone says which feature was refused and why.
"""

from typing import Any, NamedTuple

from cli.admin.consumer_group_describe import AdminClient
from cli.connection import answering


class Refusal(NamedTuple):
    """A refused update; a feature of None: all were refused."""

    feature: str | None
    error_code: int
    message: str | None


class FeatureAdminClient(AdminClient):
    """The commands' admin client, with the broker's reasons."""

    def update_feature_levels(
        self, levels: dict[str, tuple[int, int]], *, validate_only: bool
    ) -> list[Refusal]:
        """Have features at these levels.

        Args:
            levels: Way (1 up, 2 safely down, 3 down whatever is lost) and level of each feature.
            validate_only: Only ask whether it could be done.

        Returns:
            What the broker refused; nothing when all is done.

        Raises:
            KafkaError: The controller cannot be found or asked.
        """
        from kafka.errors import for_code
        from kafka.protocol.admin import UpdateFeaturesRequest

        async def ask() -> list[Refusal]:
            request = UpdateFeaturesRequest(
                timeout_ms=60_000,
                feature_updates=self._build_feature_updates(levels),
                validate_only=validate_only,
                # Version 0 would do it.
                min_version=1 if validate_only else 0,
            )
            response = await self._send_request_to_controller(
                request,
                get_errors_fn=lambda answer: [for_code(answer.error_code)],
                raise_errors=False,
            )
            if response.error_code:
                return [Refusal(None, response.error_code, response.error_message)]
            return [
                Refusal(one.feature, one.error_code, one.error_message)
                for one in response.results or ()
                if one.error_code
            ]

        refused: list[Refusal] = self._manager.run(ask)
        return refused


def open_feature_admin(**settings: Any) -> Any:
    """A `FeatureAdminClient`; raises CommandError when no broker listens."""
    settings["bootstrap_servers"] = answering(settings["bootstrap_servers"])
    return FeatureAdminClient(**settings)
