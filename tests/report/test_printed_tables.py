"""What the terminal shows."""

from __future__ import annotations

import io

import small_results
from rich.console import Console

from albatross.report.claims import measured
from albatross.report.figures import panels, theorems
from albatross.report.tables import plain_table, policy_rows, print_claims
from albatross.store.results import Stored


def test_verdicts_are_printed_with_their_numbers_and_what_was_not_run_is_left_out(tmp_path):
    small_results.write_panel(tmp_path, "a")
    written = io.StringIO()
    print_claims(Console(file=written, width=200), measured(Stored(tmp_path)))
    papers, ours = written.getvalue().split("Our own questions\n")
    assert papers.startswith(
        """The paper's claims
  holds (not run: b): Adapting to the norm lowers regret 1.5 to 3 times.
    regret of OFUL+ given 10 / of ALB-Norm; wanted: 1.5 to 3
    - default: norm 0.1: 2.4
    - the main text, with the paper's estimator: norm 0.1: """
    )
    assert "Thompson sampling" in ours
    assert "huge gap" not in papers


def test_a_number_that_a_terminal_has_no_room_for_ends_in_an_ellipsis():
    table = plain_table("standings", ["policy", "rounds", "reward"], [["albatross", "12,345,678", "1,234.5"]])
    written = io.StringIO()
    Console(file=written, width=20).print(table)
    numbers = written.getvalue().splitlines()[-1].split()
    assert numbers
    assert all(each in ("albatross", "12,345,678", "1,234.5") or each.endswith("…") for each in numbers)


def test_without_results_nothing_is_printed(tmp_path):
    written = io.StringIO()
    print_claims(Console(file=written), measured(Stored(tmp_path)))
    assert written.getvalue() == ""


def test_final_numbers_keep_three_digits_and_their_rows_have_names(tmp_path):
    small_results.write_panel(tmp_path, "theorems")
    summary = Stored(tmp_path).summaries["theorems"]
    _, rows = policy_rows(summary)
    estimates = [row for row in rows if row[0] == "to the letter: estimate of the norm"]
    entries = [
        each for each in summary["policies"].values() if (each["policy"], each["part"]) == ("letter", "norm-bound")
    ]
    assert [float(row[1]) for row in estimates] == [float(f"{each['final_mean']:.3g}") for each in entries]
    assert {each["part"] for each in summary["policies"].values()} <= set(theorems._PARTS)


def test_a_policy_that_played_one_trial_has_no_deviation(tmp_path):
    small_results.write_panel(tmp_path, "e")
    summary = Stored(tmp_path).summaries["e"]
    summary["policies"]["alb-dim-inside"] |= {"trials": 1, "final_sd": 0.0}
    headings, rows = policy_rows(summary)
    deviations = {row[0]: row[headings.index("sd")] for row in rows}
    assert deviations.pop("ALB-Dim inside the ball, 1 trial") == ""
    assert all(deviations.values())


def test_the_rows_of_rated_rows_have_the_names_of_their_plots(tmp_path):
    small_results.write_panel(tmp_path, "h")
    stored = Stored(tmp_path)
    _, rows = policy_rows(stored.summaries["h"])
    assert {row[0].partition(", ")[2] for row in rows} == {plot.title for plot in panels.plots(stored, "h")}
