"""The simulator: the real code under every fault that a seed can think of, faster than real time, the same every time.

    clock, chance        virtual time and randomness: everything that happens follows from a seed
    process              what can be killed, stalled and started again, at any single action
    disk, database       disks that tear, lose, lie, fill up and rot, below the gateway's log and below an outbox
    network              delay, loss, duplication, reordering, partition

Nothing here is a copy of what it tests. Only the outermost things are replaced: time, the network, the disks, luck.
"""
