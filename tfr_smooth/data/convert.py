"""Command that converts LETOR files to TF-Ranking's records and back.

    python -m tfr_smooth.data.convert letor_to_tfrecord 'Fold1/train*.txt' --output=train.tfrecord --num_shards=8
    python -m tfr_smooth.data.convert tfrecord_to_letor 'train.tfrecord-*' --output=train.txt

After an interruption, `letor_to_tfrecord` with the same arguments resumes after the last finished file.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tfr_smooth.data.elwc import ElwcSchema, letor_to_tfrecord, tfrecord_to_letor


class _ProgressLine:
    """Prints progress on stderr: one updated line on a terminal, a line every 30 seconds in a log."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._start = self._last = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self._last < (0.5 if self._terminal else 30.0) and done != total:
            return
        self._last = now
        rate = done / max(now - self._start, 1e-3)
        of_all = f" of {total}, {(total - done) / rate:.0f} s left" if total else ""
        print(f"{done} queries{of_all}", end="   \r" if self._terminal else "\n", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
      arguments: The command line without the program name. None uses `sys.argv`.

    Returns:
      The exit status: 0, or 1 after an error, which is printed on stderr.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tfr_smooth.data.convert", description="Converts LETOR files to TF-Ranking's records and back."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    to_elwc = commands.add_parser("letor_to_tfrecord", help="convert LETOR text to TFRecords of ExampleListWithContext")
    to_elwc.add_argument("--num_shards", type=int, default=1, help="number of files to write (default 1)")
    to_elwc.add_argument("--num_features", type=int, help="number of features (default: the highest index)")
    to_letor = commands.add_parser(
        "tfrecord_to_letor", help="convert TFRecords of ExampleListWithContext to LETOR text"
    )
    to_letor.add_argument("--drop_others", action="store_true", help="drop features that the schema does not name")
    names = ElwcSchema()
    for command in (to_elwc, to_letor):
        command.add_argument("source", nargs="+", help="input files or glob patterns")
        command.add_argument("--output", required=True, help="output file")
        command.add_argument(
            "--features",
            default=names.features,
            help="name of the feature vector, or a name with {} for one feature per index (default %(default)s)",
        )
        command.add_argument("--label", default=names.label, help="name of the label (default %(default)s)")
        command.add_argument("--query_id", default=names.query_id, help="name of the query id (default %(default)s)")
        command.add_argument("--doc_id", default=names.doc_id, help="name of the document id (default %(default)s)")
    flags = parser.parse_args(arguments)
    start = time.monotonic()
    try:
        schema = ElwcSchema(flags.features, flags.label, flags.query_id, flags.doc_id)
        written: Sequence[object] = [flags.output]
        if flags.command == "letor_to_tfrecord":
            written = letor_to_tfrecord(
                flags.source,
                flags.output,
                schema=schema,
                num_features=flags.num_features,
                num_shards=flags.num_shards,
                progress=_ProgressLine(),
            )
        else:
            tfrecord_to_letor(
                flags.source, flags.output, schema=schema, drop_others=flags.drop_others, progress=_ProgressLine()
            )
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"Wrote {', '.join(map(str, written))} in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
