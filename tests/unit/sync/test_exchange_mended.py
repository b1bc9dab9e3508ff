"""A device whose outbox was damaged, and mended while it runs: what the gateway has is told to it again."""

from contextlib import closing
from pathlib import Path

import pytest

from catchment.sync import frame as f
from catchment.sync.happening import Parted
from catchment.sync.outbox import Outbox, OutboxError
from tests.unit.sync.outbox_world import nonces
from tests.unit.sync.test_exchange import Phone


def test_an_outbox_that_was_mended_and_knows_less_is_told_again_what_is_acknowledged(tmp_path: Path) -> None:
    with closing(Outbox.open(tmp_path / "outbox.db", fresh_nonce=nonces())) as outbox:
        phone = Phone(outbox=outbox)
        phone.joins()
        phone.append(1, 2)
        phone.says()
        assert outbox.epoch is not None
        done = f.Mark("fixes", outbox.epoch, 2)
        phone.hears(f.Ack((done,)))
        with outbox.transaction():
            outbox.save_state("engine", b"one")
            # What rots in these numbers is seen by nobody; what rots in the state is, and everything is mended.
            outbox._connection().execute("UPDATE channel SET acked = 0")
            outbox._connection().execute("UPDATE state SET value = x'00'")
        with pytest.raises(OutboxError, match="S433"):
            outbox.load_state("engine")
        assert outbox.start("fixes") is not None
        assert [type(happening) for happening in phone.exchange.due(phone.clocks)] == [Parted]
        phone.joins(marks=(done,))
        assert outbox.start("fixes") is None
        phone.append(3)
        (_, data) = phone.says()
        assert isinstance(data, f.Data)
        assert (data.epoch, data.first, data.count) == (outbox.epoch, 0, 1)
