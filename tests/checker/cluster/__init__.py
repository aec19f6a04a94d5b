"""Histories on several brokers: what is done to them, and what is looked for beside the clients'.

`faults` has the cluster's faults, `nemesis` draws them; `replicas` compares the files of brokers,
`ledger` what was in them before, `store_history` reads what the store was made to say.
"""
