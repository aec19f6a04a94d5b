"""Where `broker.answer` was before."""

from broker.answer import Answer

__all__ = ["Answer"]
