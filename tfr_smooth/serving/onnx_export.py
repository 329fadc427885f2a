"""Export of a ranker as an ONNX file, which takes the raw columns of a table."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _estimator, _files
from tfr_smooth.columns import Category, Column, Id, TableFeatures, Vector, list_context
from tfr_smooth.data.roles import ALL_NUMBERS
from tfr_smooth.models import Scorer, TableScorer
from tfr_smooth.serving import ranker_export, versions
from tfr_smooth.serving.servable import RankerInputs, make_servable

_OPSET = 18  # the first with bitwise operations
_INNER = "model/"  # starts the names of tensors, which are then none of columns


def export_onnx(model: Scorer, path: str | os.PathLike[str]) -> Path:
    """Exports a ranker as an ONNX file.

    The inputs and the outputs `scores`, `valid` and `order` are those of the signature `rank` of `export_ranker`: the
    columns of a `TableScorer` under their names, ids as strings, or the `features` of another scorer; and the `mask`
    [batch, list], or [[True]] if every document is real.

    The file has a table of the features of each known value of a category or id. There is none for texts of words,
    sets, hashed ids, texts with an encoder, matches of terms, and crosses: these are refused.

    Args:
      model: A `TableScorer`, such as `Ranker.model_`, or another scorer with weights.
      path: The file. An existing one is replaced.

    Returns:
      The path.

    Raises:
      ValueError: If a column or an operation of the model cannot be exported. The message names it.
      ImportError: If tf2onnx is not installed; the extra `tfr_smooth[onnx]` includes it.

    In the file, ranks, shares and isotonic calibration take time and memory O(n^2) for lists of n documents.

    Example:
      >>> import os, tempfile
      >>> import numpy as np, onnxruntime
      >>> from tfr_smooth import columns, models, serving
      >>> layer = columns.TableFeatures([columns.Category(name="brand", categories=("acme", "umbrella"))])
      >>> model = models.TableScorer(layer, models.FeedForwardScorer(hidden=[4]))
      >>> model.build()
      >>> path = serving.export_onnx(model, os.path.join(tempfile.mkdtemp(), "ranker.onnx"))
      >>> documents = {"brand": np.array([["acme", "unseen"]]), "mask": np.array([[True]])}
      >>> (scores,) = onnxruntime.InferenceSession(path).run(["scores"], documents)
      >>> scores.shape
      (1, 2)
    """
    _estimator.check_process()
    with _arguments.needed("onnx", extra="onnx", by="`export_onnx`"):
        import onnx
    lookups: dict[str, _Lookup] = {}
    numbers: list[str] = []
    if isinstance(_arguments.instance("model", model, Scorer), TableScorer):
        model, lookups = _with_lookups(model)
    if isinstance(model, TableScorer) and not model.table_features.stacked:
        numbers, arguments = model.stackable_numbers, model.export_arguments
        specs = {name: spec for name, spec in arguments["example_feature_spec"].items() if name not in numbers}
        if numbers:  # As one tensor: tf2onnx would take minutes for thousands of columns.
            specs[ALL_NUMBERS] = tf.io.FixedLenFeature([len(numbers)], tf.float32)
        inputs = RankerInputs(**{**arguments, "example_feature_spec": specs})
    else:
        if getattr(model, "num_features", None) is None:
            raise ValueError("`model` must have weights, got none: call it once.")
        inputs = RankerInputs.dense(model.num_features, missing_values=isinstance(model, TableScorer))
    if taken := sorted({"scores", "valid", "order"} & {*inputs.arguments, *numbers}):
        raise ValueError(f"`model` must have no column with the name of an output, got {taken[0]!r}.")
    ranker_export.call_once(model, inputs, hint="")
    servable, _ = make_servable(model, inputs)
    proto = converted(servable.rank, [])
    proto = onnx.compose.add_prefix(proto, _INNER)
    for output in proto.graph.output:  # ONNX before 1.19 cannot leave them out.
        inner, output.name = output.name, output.name.removeprefix(_INNER)
        proto.graph.node.append(onnx.helper.make_node("Identity", [inner], [output.name]))
    _name_inputs(proto.graph, {argument: name for name, argument in inputs.arguments.items()}, lookups, numbers)
    proto.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 2))
    onnx.checker.check_model(proto, full_check=True)
    _files.write_bytes(path, [proto.SerializeToString()])
    return Path(path)


def converted(function: Any, signature: Sequence[tf.TensorSpec]) -> Any:
    """Returns the ONNX model of a `tf.function`.

    Raises:
      ValueError: If ONNX does not have one of its operations.
      ImportError: If tf2onnx is not installed.
    """
    with _arguments.needed("tf2onnx", extra="onnx", by="ONNX"):
        import onnx
        import tf2onnx
    handlers: dict[str, Any] = {"LowerBound": (functools.partial(_search, "Less"), [])}
    handlers["UpperBound"] = (functools.partial(_search, "LessOrEqual"), [])
    handlers["Erfc"] = (_erfc, [])
    with versions.quiet("tf2onnx"), versions.quiet("tensorflow"):  # traces of what is refused below
        proto, _ = tf2onnx.convert.from_function(function, signature, opset=_OPSET, custom_op_handlers=handlers)
    unknown = sorted({node.op_type for node in proto.graph.node if not onnx.defs.has(node.op_type, node.domain)})
    if unknown:
        raise ValueError(f"`model` must consist of operations that ONNX has, got {unknown}: export a SavedModel.")
    return proto


def with_weights(function: Any, variables: Sequence[Any], signature: Sequence[tf.TensorSpec]) -> Any:
    """Returns the ONNX model of a function of Keras 3 with these variables.

    The weights are added last: as constants of TensorFlow, they would be copied many times.

    Raises:
      ValueError, ImportError: As for `converted`.
    """
    from onnx.numpy_helper import from_array

    weights = {f"weight_{number}": variable for number, variable in enumerate(variables)}
    specs = [tf.TensorSpec(variable.shape, variable.dtype, name=name) for name, variable in weights.items()]

    def of_weights(*given: tf.Tensor) -> Any:
        values = [*zip(variables, given, strict=False)]
        with tf.keras.StatelessScope(state_mapping=values):
            return function(*given[len(values) :])

    proto = converted(tf.function(of_weights, autograph=False), [*specs, *signature])
    graph, used = proto.graph, {name for node in proto.graph.node for name in node.input}
    graph.initializer.extend(from_array(value.numpy(), name) for name, value in weights.items() if name in used)
    inputs = [each for each in graph.input if each.name not in weights]
    del graph.input[:]
    graph.input.extend(inputs)
    return proto


class _Lookup(NamedTuple):
    """The features of the texts of a column.

    Attributes:
      texts: The known texts and "".
      features: The features of each, and last those of other texts, float32 [texts + 1, features].
      is_shared: Whether the column has shares: the last feature is then NaN for "" and 0 for other texts, and in the
        file the number of the text among those of the call is added.
    """

    texts: list[str]
    features: np.ndarray
    is_shared: bool


class _LookedUp(TableFeatures):
    """A layer with the parts of another one, in which the features of some columns are looked up as one vector."""

    def __init__(self, layer: TableFeatures, columns: Sequence[Column], lookups: Mapping[str, _Lookup]) -> None:
        super().__init__(columns, trees=layer.trees, stacked=layer.stacked)
        parts, ends = [], dict.fromkeys(lookups, 0)
        for part in layer.parts:
            name = part.names[0]
            if part.kind in ("column", "statistic", "share") and name in ends:
                start, ends[name] = ends[name], ends[name] + len(part.names)
                features = _shares if part.kind == "share" else _sliced
                part = part._replace(features=functools.partial(features, name, slice(start, ends[name])))
            parts.append(part)
        self.tree_inputs = layer.tree_inputs  # type: ignore[method-assign]
        self.__dict__.update(parts=parts, _places=layer._places)


def _sliced(name: str, places: slice, values: Mapping[str, Any], mask: Any) -> tf.Tensor:
    return values[name][..., places]


def _shares(name: str, place: slice, values: Mapping[str, Any], mask: Any) -> tf.Tensor:
    """Returns the shares of texts [batch, list, 1], given by their numbers."""
    numbered = values[name][..., place]
    known = ~tf.math.is_nan(numbered) & list_context.checked_mask(numbered[..., 0], mask)[..., tf.newaxis]
    is_equal = tf.equal(numbered, tf.transpose(numbered, [0, 2, 1])) & tf.transpose(known, [0, 2, 1])
    equal = tf.reduce_sum(tf.cast(is_equal, tf.float32), axis=2, keepdims=True)
    documents = tf.reduce_sum(tf.cast(known, tf.float32), axis=1, keepdims=True)
    return tf.where(known, tf.math.divide_no_nan(equal - 1.0, documents - 1.0), 0.0)


def _with_lookups(model: TableScorer) -> tuple[TableScorer, dict[str, _Lookup]]:
    """Returns the model of the features of texts, and these."""
    layer, columns, lookups = model.table_features, [], {}
    for column in layer.columns:
        if column.dtype == tf.string:
            if not isinstance(column, Category | Id) or (isinstance(column, Id) and column.buckets):
                _refuse(f"column {column.name!r} of the kind {column.kind!r}")
            statistics = [statistic for statistic in layer.statistics if statistic.columns == (column.name,)]
            texts = sorted({"", *column.categories}.union(*(statistic.values for statistic in statistics)))
            # As in the layer, whole numbers may be written as floats.
            texts = sorted({*texts, *(f"{text}.0" for text in texts if text.lstrip("+-").isdigit())})
            of_column = TableFeatures([column], statistics=statistics)
            features = of_column({column.name: tf.constant([*texts, texts[-1] + "?"])}).numpy()  # the last one is new
            if is_shared := column.name in layer.list_shares:
                features = np.pad(features, [(0, 0), (0, 1)])
                features[texts.index(""), -1] = np.nan
            lookups[column.name] = _Lookup(texts, features, is_shared)
            column = Vector(name=column.name, length=features.shape[1])
        columns.append(column)
    for match in layer.matches:
        if set(match.columns) & set(lookups):
            _refuse(f"match of {list(match.columns)}")
    for statistic in layer.statistics:
        if len(statistic.columns) > 1:
            _refuse(f"cross of {list(statistic.columns)}")
    layer = _LookedUp(layer, columns, lookups)
    return TableScorer(layer, model.scorer, query_columns=model.query_columns), lookups


def _refuse(got: str) -> NoReturn:
    raise ValueError(f"`model` must have only columns that ONNX can prepare, got the {got}: export a SavedModel.")


def _search(comparison: str, ctx: Any, node: Any, name: str, args: Sequence[Any]) -> None:
    """Converts the search for values [batch, n] in sorted ones [batch, m]: counts those for which the comparison holds.

    ONNX has no search. The arguments are those of a handler of tf2onnx.
    """
    outputs, dtype, shape = node.output, ctx.get_dtype(node.output[0]), ctx.get_shape(node.output[0])
    axes = [ctx.make_const(f"{name}_axis_{axis}", np.array([axis])).output[0] for axis in (1, 2)]
    sides = [ctx.make_node("Unsqueeze", [side, axis]).output[0] for side, axis in zip(node.input, axes, strict=True)]
    counted = ctx.make_node("Cast", ctx.make_node(comparison, sides).output, attr={"to": dtype}).output[0]
    options = {"attr": {"keepdims": 0}, "outputs": outputs, "shapes": [shape], "dtypes": [dtype]}
    ctx.remove_node(name)
    ctx.make_node("ReduceSum", [counted, axes[1]], **options)


def _erfc(ctx: Any, node: Any, name: str, args: Sequence[Any]) -> None:
    """Converts the complementary error function of gelu, which ONNX does not have."""
    inputs, outputs, dtype = list(node.input), node.output, ctx.get_dtype(node.output[0])
    options = {"outputs": outputs, "shapes": [ctx.get_shape(outputs[0])], "dtypes": [dtype]}
    one = ctx.make_const(f"{name}_one", np.ones([], np.float32)).output[0]
    ctx.remove_node(name)
    ctx.make_node("Sub", [one, ctx.make_node("Erf", inputs).output[0]], **options)


def _name_inputs(graph: Any, names: Mapping[str, str], lookups: Mapping[str, _Lookup], numbers: Sequence[str]) -> None:
    """Adds the inputs of columns by their names, the lookups of texts, and what stacks the numbers."""
    from onnx import TensorProto, helper
    from onnx.numpy_helper import from_array

    inputs, nodes = [], []
    for inner in graph.input:
        name, dtype = names[inner.name.removeprefix(_INNER)], inner.type.tensor_type.elem_type
        shape = [dim.dim_value or ("batch", "list")[axis] for axis, dim in enumerate(inner.type.tensor_type.shape.dim)]
        if name == ALL_NUMBERS:
            graph.initializer.append(from_array(np.array([2]), f"{inner.name} axis"))
            parts = [f"{inner.name} {place}" for place in range(len(numbers))]
            for number, part in zip(numbers, parts, strict=True):
                inputs.append(helper.make_tensor_value_info(number, dtype, shape[:2]))
                nodes.append(helper.make_node("Unsqueeze", [number, f"{inner.name} axis"], [part]))
            nodes.append(helper.make_node("Concat", parts, [inner.name], axis=2))
            continue
        if name in lookups:
            texts, features, is_shared = lookups[name]
            shape, dtype = shape[:-1], TensorProto.STRING
            table, place = f"{inner.name} table", f"{inner.name} place"
            graph.initializer.append(from_array(features, table))
            places: dict[str, Any] = {"values_int64s": range(len(texts)), "default_int64": len(texts)}
            options = {"domain": "ai.onnx.ml", "keys_strings": texts, **places}
            nodes.append(helper.make_node("LabelEncoder", [name], [place], **options))
            row = f"{inner.name} row" if is_shared else inner.name
            nodes.append(helper.make_node("Gather", [table, place], [row]))
            if is_shared:
                last = np.eye(features.shape[1], dtype=np.float32)[-1]
                graph.initializer.extend([from_array(last, f"{row} last"), from_array(np.array([-1]), f"{row} axis")])
                nodes += [
                    helper.make_node("Unique", [name], [f"{row} distinct", "", f"{row} flat"], sorted=0),
                    helper.make_node("Cast", [f"{row} flat"], [f"{row} number"], to=TensorProto.FLOAT),
                    helper.make_node("Shape", [name], [f"{row} shape"]),
                    helper.make_node("Reshape", [f"{row} number", f"{row} shape"], [f"{row} numbers"]),
                    helper.make_node("Unsqueeze", [f"{row} numbers", f"{row} axis"], [f"{row} column"]),
                    helper.make_node("Mul", [f"{row} column", f"{row} last"], [f"{row} added"]),
                    helper.make_node("Add", [row, f"{row} added"], [inner.name]),
                ]
        else:
            nodes.append(helper.make_node("Identity", [name], [inner.name]))
        inputs.append(helper.make_tensor_value_info(name, dtype, shape))
    nodes += graph.node
    outputs = sorted(graph.output, key=lambda output: output.name != "scores")
    for field, values in ((graph.input, inputs), (graph.node, nodes), (graph.output, outputs)):
        del field[:]
        field.extend(values)
