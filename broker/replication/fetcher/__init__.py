"""Fetching from leaders: what this broker follows.

    Fetchers              one of a broker: follow, unfollow
      ReplicaFetcher      one of a leader and a number below `num.replica.fetchers`: a state machine
        FollowerSession   the incremental fetch session: what is to be sent of which partition
        Answer            one answer, appended in slices of the loop
        Delays            partitions that are tried again later, with one timer
      LogRepair           truncates logs that have diverged, or starts them again

    broker.peers <── requests ── ReplicaFetcher ── batches ──> Partition.append_fetched

Source: Kafka, AbstractFetcherThread.scala, ReplicaFetcherThread.scala, FetchSessionHandler.java.
"""
