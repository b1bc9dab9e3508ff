"""`catchment gateway`: run a gateway, and look after its devices.

`run` is the service. The other actions work on its data directory, whether it runs or not, on the machine where that
is.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from pathlib import Path

from catchment.errors import PeerError

_DAY_US = 86_400_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    run_it = actions.add_parser("run", help="run a gateway until it is told to stop")
    _data(run_it)
    run_it.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: this machine only)")
    run_it.add_argument("--port", type=int, default=8080, help="the port; 0 takes a free one (default: 8080)")
    run_it.add_argument("--name", default="gateway", help="its name among the gateways that share the log")
    run_it.add_argument("--address", help="the URL at which devices reach it (default: from host and port)")
    run_it.add_argument("--certificate", type=Path, metavar="PEM", help="speak TLS, with this certificate chain")
    run_it.add_argument("--key", type=Path, metavar="PEM", help="the certificate's private key")
    run_it.add_argument("--partitions", type=int, default=4, help="of a new log (default: 4)")
    run_it.add_argument("--tick", type=float, default=1.0, metavar="S", help="seconds between ticks (default: 1)")
    run_it.add_argument("--horizon", type=float, default=3600.0, metavar="S", help="tick so long after the last data")
    run_it.add_argument("--reserve-mb", type=int, default=256, metavar="MB", help="of the disk, never written")
    run_it.add_argument("--calm", type=float, default=30.0, metavar="S", help="slow devices once the cloud is so late")
    run_it.add_argument("--connections", type=int, default=20_000, help="WebSockets held at most (default: 20000)")
    run_it.add_argument("--verbose", action="store_true", help="say more")

    token = actions.add_parser("token", help="make a one-time token that enrols a device")
    _data(token)
    token.add_argument("--user", required=True, help="whose device it will be")
    token.add_argument("--device", help="the device's name, if it is not to choose its own")
    token.add_argument("--program", default="", help="the program whose plan it runs")
    token.add_argument("--kind", default="", help="what kind of device it is")
    token.add_argument("--days", type=float, default=1.0, help="how long the token is valid (default: 1)")

    account = actions.add_parser("account", help="let somebody look at the page; prints the password, once")
    _data(account)
    account.add_argument("--user", required=True, help="the name: of the user whose report they see")
    account.add_argument("--operator", action="store_true", help="they see the fleet, not only a report of their own")
    account.add_argument("--remove", action="store_true", help="take the account away")

    devices = actions.add_parser("devices", help="list the devices")
    _data(devices)
    devices.add_argument("--user", help="of this user only")
    for action, words in (
        ("revoke", "refuse a device from now on"),
        ("release", "let a device in again of which two live copies were found"),
    ):
        one = actions.add_parser(action, help=words)
        _data(one)
        one.add_argument("device", help="its name")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    match arguments.action:
        case "run":
            return _run(arguments)
        case "token":
            return _token(arguments)
        case "account":
            return _account(arguments)
        case "devices":
            return _devices(arguments)
        case "revoke":
            return _revoke(arguments)
        case _:
            return _release(arguments)


def _data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=Path("catchment-data"), help="the gateway's directory")


def _run(arguments: argparse.Namespace) -> int:
    # Imported here: the other actions need no server.
    from catchment.gateway.journal import write_to
    from catchment.gateway.limits import GatewayLimits
    from catchment.gateway.log.files.commit import Ticks
    from catchment.gateway.log.files.partition import Limits
    from catchment.gateway.run import Listen, bind, loop_factory, serve
    from catchment.gateway.stores import Options

    listen = Listen(arguments.host, arguments.port, arguments.certificate, arguments.key)
    write_to(sys.stderr, level=logging.DEBUG if arguments.verbose else logging.INFO)
    listening = bind(listen)
    port = listening.getsockname()[1]
    scheme = "http" if arguments.certificate is None else "https"
    address = arguments.address or f"{scheme}://{arguments.host}:{port}"
    options = Options(
        arguments.data,
        name=arguments.name,
        address=address,
        partitions=arguments.partitions,
        limits=GatewayLimits(connections=arguments.connections),
        log=Limits(reserve_bytes=arguments.reserve_mb << 20),
        calm_us=int(arguments.calm * 1e6),
        ticks=Ticks(int(arguments.tick * 1e6), int(arguments.horizon * 1e6)),
    )
    print(f"gateway {arguments.name} at {address}, data in {arguments.data}", flush=True)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(options, listen, listening))
    return 0


def _token(arguments: argparse.Namespace) -> int:
    from catchment.gateway.stores import open_enrolment

    _must_exist_or_make(arguments.data)
    store = open_enrolment(arguments.data)
    print(
        store.token(
            user=arguments.user,
            program=arguments.program,
            device=arguments.device,
            kind=arguments.kind,
            now_us=_now_us(),
            valid_us=int(arguments.days * _DAY_US),
        )
    )
    store.close()
    return 0


def _account(arguments: argparse.Namespace) -> int:
    from catchment.gateway.stores import open_accounts

    _must_exist_or_make(arguments.data)
    store = open_accounts(arguments.data)
    try:
        if arguments.remove:
            done = store.remove(arguments.user)
            print(f"{arguments.user} may not look any more" if done else f"{arguments.user} has no account")
            return 0 if done else 1
        print(store.give(arguments.user, operator=arguments.operator))
        return 0
    finally:
        store.close()


def _devices(arguments: argparse.Namespace) -> int:
    from catchment.gateway.stores import open_enrolment

    _must_exist(arguments.data)
    store = open_enrolment(arguments.data)
    for device in store.devices(arguments.user):
        state = "revoked" if device.revoked_us else "two copies" if device.quarantined_us else "enrolled"
        print(f"{device.device}\t{device.user}\t{device.program or '-'}\t{device.kind or '-'}\t{state}")
    store.close()
    return 0


def _revoke(arguments: argparse.Namespace) -> int:
    from catchment.gateway.stores import open_enrolment

    _must_exist(arguments.data)
    store = open_enrolment(arguments.data)
    done = store.revoke(arguments.device, now_us=_now_us())
    store.close()
    print(f"{arguments.device} is refused from now on" if done else f"no device {arguments.device} to revoke")
    return 0 if done else 1


def _release(arguments: argparse.Namespace) -> int:
    from catchment.gateway.stores import open_enrolment

    _must_exist(arguments.data)
    store = open_enrolment(arguments.data)
    found = store.find(arguments.device)
    held = found is not None and found.quarantined_us is not None
    if held:
        store.quarantine(arguments.device, now_us=None)
    store.close()
    print(f"{arguments.device} may speak again" if held else f"{arguments.device} is not held back")
    return 0 if held else 1


def _must_exist(data: Path) -> None:
    if not (data / "enrolment.db").exists():
        raise PeerError(
            "G563",
            f"there is no gateway's data in {data}",
            why="the directory has no enrolment.db",
            fix="name the directory that the gateway runs with: --data DIR",
        )


def _must_exist_or_make(data: Path) -> None:
    """A token may be made before the gateway has ever run."""
    data.mkdir(parents=True, exist_ok=True)
    data.chmod(0o700)


def _now_us() -> int:
    return time.time_ns() // 1000
