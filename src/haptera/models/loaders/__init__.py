"""Loaders: from the text after the prefix of `--model PREFIX:...` to a model that knows its preprocessing.

A loader is a function in a file of its own and one line of the catalog (kind `loaders`), or an entry point of the group
`haptera.loaders`. It takes that text and keyword arguments, and returns an `nn.Module` from images in [0, 1] to logits,
such as a `haptera.models.Classifier`, whose `preprocessing` says at what size images are read. Where it has parameters
of these names, it is handed `pretrained` (false where the user gives weights), `normalise` and `allow_pickle`.
"""
