"""What is counted of connections, and when another one may be accepted."""

from broker.network.connection_limits import ConnectionLimits


def limits_of(*, rate_max: int = 1000, descriptors_max: int = 1000) -> ConnectionLimits:
    return ConnectionLimits(
        max_connections=1000,
        max_per_address=1,
        overrides={"b": 2},
        rate_max=rate_max,
        descriptors_max=descriptors_max,
    )


def test_addresses_are_forgotten_with_their_last_connection() -> None:
    """Else a scan of the internet would fill the memory."""
    limits = limits_of()
    for number in range(100):
        limits.opened(str(number))
        limits.closed(str(number))
    assert limits._per_address == {}
    assert limits.total == 0


def test_a_refusal_names_the_limit() -> None:
    """An operator finds it in the log, and looks for the setting."""
    limits = limits_of(descriptors_max=3)
    limits.opened("a")
    assert limits.refusal("a") == "max.connections.per.ip=1 are open from this address"
    limits.opened("b")
    assert limits.refusal("b") is None
    limits.opened("b")
    assert "ulimit -n" in str(limits.refusal("c"))


def test_the_rate_is_of_whole_seconds() -> None:
    """`max.connection.creation.rate`: used up, the next one waits for the second to end."""
    limits = limits_of(rate_max=2)
    assert limits.rate_delay_ms(5000.0) == 0.0
    limits.opened("a")
    limits.opened("b")
    assert limits.rate_delay_ms(5400.0) == 600.0
    assert limits.rate_delay_ms(6000.0) == 0.0
