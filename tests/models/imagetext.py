"""A small CLIP and a small SigLIP of transformers with a tokenizer of words, made here, as folders that people have."""

import json
from pathlib import Path

import torch
from tests.models.conftest import SIZE, processor

NAMES = ["a", "photo", "of", "the", "bad", "small", "big", ".", "cat", "dog", "horse", "ship", "cell", "tower"]
WORDS = ["[PAD]", "[BOS]", "[UNK]", *NAMES, "[EOS]"]
EOS = len(WORDS) - 1
CLASSES = ["cat", "dog", "horse", "ship", "cell_tower"]


def tokenizer(begins: bool = True):
    """Words and full stops, with a token before them, as CLIP has it, or without, as SigLIP, and one after them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    single = "[BOS] $A [EOS]" if begins else "$A [EOS]"
    made.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("[BOS]", 1), ("[EOS]", EOS)])
    names = ["input_ids", "attention_mask"] if begins else ["input_ids"]
    return PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]", bos_token="[BOS]", eos_token="[EOS]",
        model_input_names=names,
    )  # fmt: skip


def network(kind: str = "clip"):
    """A model with random weights, in evaluation mode."""
    import transformers

    sides = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = sides | {"vocab_size": len(WORDS), "max_position_embeddings": 16}
    text |= {"bos_token_id": 1, "eos_token_id": EOS, "pad_token_id": 0}
    image = sides | {"image_size": SIZE, "patch_size": 8, "num_channels": 3}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "clip":
            made = transformers.CLIPModel(
                transformers.CLIPConfig(text_config=text, vision_config=image, projection_dim=12)
            )
        else:
            made = transformers.SiglipModel(transformers.SiglipConfig(text_config=text, vision_config=image))
        for parameter in made.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.3)
        made.logit_scale.data.fill_(2.0)
    return made.eval()


def save(folder: Path, kind: str = "clip") -> Path:
    """Write the model, its tokenizer and its image processor."""
    network(kind).save_pretrained(folder)
    tokenizer(kind == "clip").save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor(crop_pct=None)))
    return folder
