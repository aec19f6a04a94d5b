"""A history checker after Jepsen's Kafka workload: clients, faults, the search for anomalies.

    clients --> histories (JSON lines) --> pair --> versions --> analyses --> report
       ^                                            `history`  `versions`  `analysis`
       |  kills, stops, a bad network: `nemesis`, `tests.fakes.network.fault_proxy`
    broker, a real process: `brokers`; with a bug: `mutants`, `mutant_broker`
    three brokers on an etcd, their faults, what is judged of their files and store: `cluster`

    python -m tests.checker --minutes 10 --seed 1 --faults kill,pause,clients,freeze,proxy
    python -m tests.checker --broker kafka ...          released Kafka, the same run
    python -m tests.checker --brokers 3 --faults kill,pause,cut,operate,clients,freeze
    python -m tests.checker --clients share             a share group and who writes for it
    python -m tests.checker.delayed --transactions 50000  late requests, transaction version 2
    python -m tests.checker.delayed --version 1 --no-verification   what the old protocol cannot do
    python -m tests.checker.mutation.score [NAME ...]   does the checker notice seeded bugs?
    pytest tests/checker -m "not slow"                  the short variants, as `make test` does
    pytest tests/checker -m slow                        the long ones

The exit code is 0 when there is no anomaly, every job has done all of its input after the faults,
no client ended by itself and all kinds of clients got on under faults (`progress`). What remains of
a run that is not clean is kept, its directory is printed: `*.jsonl` are the histories, `*.log` what
clients printed, `broker/` has log and data. `VARVE_CHECKER_DEBUG=eos,protocol` lets librdkafka
tell what it does. Clients and faults are drawn by the seed; what the machine makes of it is not.

Where to read on: `worker` has the kinds of clients, `workloads` what runs are made of, `nemesis`
the faults, `history` the lines; `values`, `orders`, `graph`, `groups` and `shares` say of each
anomaly what it is, `anomaly` which of them Kafka's model allows. docs/checking.md has the figures.

A client that waits for ever is ended and named ("client hung"), with the call it was in: that is
a finding about the client, unless the broker owes it an answer. See `client_process.LASTING`.
"""
