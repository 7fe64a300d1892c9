"""Options that several commands share, each written once."""

from pathlib import Path
from typing import Annotated

import typer

Models = Annotated[
    list[str] | None, typer.Option(help="A name of the catalog, module:function or file.py:function; repeatable.")
]
Weights = Annotated[list[Path] | None, typer.Option(help="A .safetensors file for each model, in order.")]
DataPath = Annotated[str | None, typer.Option(help="digits, an .npz file, or a folder of images.")]
Size = Annotated[int | None, typer.Option(help="Resize and crop images of a folder to this side.")]
Channels = Annotated[int | None, typer.Option(help="1 for grey, 3 for colour.")]
MappingFile = Annotated[Path | None, typer.Option(help="CSV from the data's classes to the model's: class,accepted.")]
Restrict = Annotated[bool, typer.Option("--restrict", help="Predict only classes that the mapping names.")]
Keep = Annotated[str | None, typer.Option(help="float32 or float16 logits, or top5 and the like.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, ...; a GPU if there is one.")]
Jobs = Annotated[int, typer.Option(help="Processes on this machine.")]
Cluster = Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")]
AllowPickle = Annotated[bool, typer.Option("--allow-pickle", help="Read pickled weights.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no remarks.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[str, typer.Option(help="A name of the catalog, module:function or file.py:function.")]
OwnWeights = Annotated[Path | None, typer.Option("--weights", help="A .safetensors file.")]
BatchSize = Annotated[int, typer.Option(help="Images per forward pass.")]
Folder = Annotated[Path, typer.Argument(help="The folder of a study.", show_default=False)]
Out = Annotated[
    Path | None,
    typer.Option(help="Write report.html, table.parquet and result.json into this folder.", show_default=False),
]
