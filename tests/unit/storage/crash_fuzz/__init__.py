"""Seeded runs of a log manager on a disk that loses power and refuses calls.

    python -m tests.unit.storage.crash_fuzz --seed 1 --runs 100      seeds 1, 2, ...
    python -m tests.unit.storage.crash_fuzz --seed 17 --minutes 10   as many as there is time for
    python -m tests.unit.storage.crash_fuzz --seed 17 --steps "create:3 append:9 cut:4"

A run is a list of steps (`steps`), drawn by its seed; what a step does beyond its name is drawn by
its own number, so that steps can be left out of a run that fails. A fault is a step, too: the next
calls of the disk meet it. What every log may and must hold is in `model`, the broker that comes
up again and again in `machine`, and `judge` compares.

The rules, for each partition whose topic exists and whose directory serves:

    nothing lost      What lay below the recovery point is there, whatever the power took: records
                      that neither the log start nor a compaction explains may not be missing. A
                      clean stop and a kill of the process alone lose nothing at all.
    nothing else      Each batch was appended to this topic's log, here, in this epoch, and not cut
                      since. A batch may also be there whose append has failed, as the last one.
    no hole           Batches follow on each other. A record of a log that was compacted, or whose
                      leader's was, may be missing if it was aborted, is a tombstone, or has a later
                      committed record with its key. Where none of it was ever synced, a log that
                      has no other replica may begin behind what is missing.
    compaction        The last committed record of each key is there; what a tombstone has deleted
                      is not there without it.
    log start         Not above what was deleted, nor below what a checkpoint has written down.
    producers         Epoch, last sequences and open transaction of each are those of the batches.
    read_committed    The aborted transactions given to a reader are such that it sees what was
                      committed, all of it, and nothing else; the last stable offset is that of the
                      batches and markers.
    leader epochs     Each batch's epoch is the one that the cache has for its offset.
    short             A log that ends below what its checkpoints name as committed or synced says
                      so, and no other does.
    failed disk       A directory whose disk has failed is offline; its partitions are made nowhere
                      else, and are whole at the next start.
    alive             What was deleted stays so, and a partition that is not there can be created.
"""
