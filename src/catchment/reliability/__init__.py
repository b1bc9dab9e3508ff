"""Whether a run kept its promise: compare its real output with the ideal one, measure, and certify.

    verify(ideal, real)  ──▶  Report: what was lost, wrong, late or out of order   ──▶  certify(declared, report)

The ideal output is what the reference engine puts out for the same input; the real one is what came out of the system.
Both are finite cuts of the output streams. This package knows neither engine nor strategy: it compares elements.
"""

from catchment.reliability.certificate import Certificate, certify
from catchment.reliability.ideal import Element
from catchment.reliability.report import Disorder, Report, StreamReport, Witness
from catchment.reliability.verifier import Verifier, verify

__all__ = ["Certificate", "Disorder", "Element", "Report", "StreamReport", "Verifier", "Witness", "certify", "verify"]
