"""The way between the two halves of a transaction where they are on different brokers.

    registrar_router   a partition's leader to the transaction coordinator: AddPartitionsToTxn
    marker_router      the transaction coordinator to partitions' leaders: WriteTxnMarkers

Each implements the same interface as what it stands in front of (`broker.transactions.interfaces`),
and calls that where this broker is the one.
"""
