"""What a person reads when a job stops."""

from uuid import UUID

from pipeline.lake.errors import (
    JobConfigError,
    LostOffsetsError,
    MissingExtraError,
    TopicReplacedError,
)


def test_every_mistake_has_its_line() -> None:
    assert str(JobConfigError(["a: is needed", "b: is no setting"])) == (
        "2 mistakes in job.yaml:\n  a: is needed\n  b: is no setting"
    )
    assert str(JobConfigError(["a: is needed"], "x.yaml")).startswith("1 mistake in x.yaml")


def test_a_missing_library_is_named_with_what_installs_it() -> None:
    assert str(MissingExtraError("pyspark", "spark")) == (
        "pyspark is not installed: pip install '.[spark]'"
    )


def test_a_stop_says_what_goes_on() -> None:
    """The switch and the setting by name, and the offsets with both ends inclusive."""
    assert "--new-incarnation" in str(TopicReplacedError("t", UUID(int=1), UUID(int=2)))
    text = str(LostOffsetsError("t", 3, 10, 20))
    assert "t-3: offsets 10 to 19" in text
    assert "source.fail_on_data_loss: false" in text
