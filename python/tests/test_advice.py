# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
from pathlib import Path

import onramp
import pytest

HEAD = "#separator \\x09\n#unset_field\t-\n#fields\t" + "\t".join(
    ["ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "duration", "orig_bytes", "resp_bytes"]
)


def conn_log(directory: Path, senders: int, size: int) -> Path:
    """Each 5 ms, so many hosts answer one at the same time."""
    lines = [HEAD]
    for number in range(80):
        for sender in range(senders):
            ends = f"10.0.0.1\t{1000 + number}\t10.0.1.{sender}\t80"
            lines.append(f"{1_700_000_000 + number * 0.005:.6f}\tC\t{ends}\ttcp\t0.0005\t100\t{size}")
    path = directory / "conn.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_incasts_that_overflow_a_port_would_be_helped(tmp_path: Path) -> None:
    answer = onramp.would_help(conn_log(tmp_path, 24, 64_000), buffer="300 kB", progress=False)
    assert answer.helps and answer.verdict == f"On-Ramp is recommended: {answer.setting}"
    effect = answer.effect
    assert effect.buffer == "300 kB" and effect.ratio is not None and effect.interval is not None
    assert effect.interval[0] < effect.ratio < effect.interval[1] < 1
    assert [one.buffer for one in answer.other_buffers] == ["75 kB", "1.2 MB"]
    assert any("not its bursts" in limit for limit in answer.limits)
    assert "With another buffer" in str(answer)
    page = answer.report(tmp_path / "advice.html").read_text(encoding="utf-8")
    assert answer.verdict in page and "What this rests on" in page
    again = answer.scenario.set({"host.cc": "bbr"})
    assert all(run["host"]["cc"] == "bbr" for run in again.resolved)
    assert len(answer.results.params) == len(answer.scenario) == 13 * 8


def test_a_flow_at_a_time_would_not(tmp_path: Path) -> None:
    answer = onramp.would_help(conn_log(tmp_path, 1, 20_000), progress=False)
    assert not answer.helps and repr(answer) == "<Answer: On-Ramp is not recommended for this traffic>"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (HEAD + "\n1.0\tC\t10.0.0.1", {}, "conn.log, line 4: 3 fields, but 10 columns: the line is cut"),
        (HEAD + "\n", {}, "the record has no flows"),
        ("a,b\n1,2\n", {}, "conn.log, line 1: a source address lacks"),
        (HEAD + "\n", {"buffer": "300"}, "buffer is \"300\""),
        (HEAD + "\n", {"rate": "fast"}, "rate is \"fast\""),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, options: dict[str, str], words: str) -> None:
    path = tmp_path / "conn.log"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="(?s).*") as caught:
        onramp.would_help(path, progress=False, **options)  # type: ignore[arg-type]
    assert words in str(caught.value)
    with pytest.raises(FileNotFoundError):
        onramp.would_help(tmp_path / "none.log")
