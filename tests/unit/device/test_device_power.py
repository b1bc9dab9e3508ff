"""The model of energy gives the figures that it was made from, and predicts the one that it was not."""

import pytest

from catchment.device.power import BASE_W, RADIO, SENSOR_W, TABLE_3_W, TABLE_4_BYTES, TABLE_4_W, PowerMeter

SECOND_US = 1_000_000
HALF_HOUR_US = 1800 * SECOND_US


@pytest.mark.parametrize("kind", ["accelerometer", "gsm", "battery", "gps"])
def test_a_sensor_alone_draws_what_table_3_says(kind: str) -> None:
    meter = PowerMeter(now_us=0)
    for at_us in range(0, 300 * SECOND_US, 5 * SECOND_US):
        meter.read(kind, at_us)
    assert meter.used(300 * SECOND_US).watts == pytest.approx(TABLE_3_W[kind], abs=0.005)


def test_adaptive_sensing_is_predicted_from_the_other_figures() -> None:
    meter = PowerMeter(now_us=0)
    for at_us in range(0, HALF_HOUR_US, 5 * SECOND_US):
        outdoors = at_us < HALF_HOUR_US // 2
        for kind in ("gps", "accelerometer", "battery", "gsm") if outdoors else ("gsm", "battery"):
            meter.read(kind, at_us)
    # The paper measured 0.70 W, which is in none of the parameters.
    assert meter.used(HALF_HOUR_US).watts == pytest.approx(TABLE_3_W["adaptive"], abs=0.01)


@pytest.mark.parametrize(("name", "every_s"), [("none", 1), ("batch", 60), ("batch and zip", 60)])
def test_the_radio_draws_what_table_4_says(name: str, every_s: int) -> None:
    meter = PowerMeter(now_us=0)
    for at_us in range(0, HALF_HOUR_US, every_s * SECOND_US):
        meter.transfer(round(TABLE_4_BYTES[name] / 1800 * every_s), at_us)
    assert meter.used(HALF_HOUR_US).watts == pytest.approx(TABLE_4_W[name], abs=0.005)


def test_a_transfer_within_the_tail_of_another_costs_no_ramp() -> None:
    apart, together = PowerMeter(now_us=0), PowerMeter(now_us=0)
    for at_us in (0, 100 * SECOND_US):
        apart.transfer(10_000, at_us)
    for at_us in (0, 5 * SECOND_US):
        together.transfer(10_000, at_us)
    one, other = apart.used(HALF_HOUR_US), together.used(HALF_HOUR_US)
    assert one.ramp_j == pytest.approx(2 * other.ramp_j)
    assert one.active_j == pytest.approx(other.active_j)
    assert other.tail_j < one.tail_j
    assert other.total_j == pytest.approx(other.base_j + other.radio_j)


def test_what_is_not_modelled_costs_nothing_and_is_still_listed() -> None:
    meter = PowerMeter(now_us=0)
    meter.read("thermometer", 0)
    used = meter.used(SECOND_US)
    assert used.sensors_j == {"thermometer": 0.0}
    assert used.watts == pytest.approx(BASE_W)
    assert PowerMeter(now_us=5).used(5).watts == 0.0


def test_the_parameters_are_those_of_a_phone() -> None:
    assert pytest.approx(0.17) == BASE_W
    assert pytest.approx(0.71) == SENSOR_W["gps"]
    assert pytest.approx(1.18) == RADIO.high_w
    assert 20_000 < RADIO.bytes_per_s < 25_000
    assert 1.0 < RADIO.ramp_us / SECOND_US < 2.5
