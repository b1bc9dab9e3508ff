"""The gateway: where devices meet the cloud.

It takes sync streams in, makes them durable in the log, and only then acknowledges; it hands results and plans out.
`log` is the store, `service` speaks to sockets, and what lies between them decides without touching either.
"""
