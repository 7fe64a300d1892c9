"""Shifts beside what engineers use today, albumentations 2.0.8 and kornia 0.9: images per CPU-second.

    pip install albumentations==2.0.8 kornia==0.9.0
    python benchmarks/peers.py [32] [224] [NAME ...]

One thread, severity 3, colour, the peers' nearest transform at the same strength (lengths in pixels scaled to the side,
as ours are); where two of theirs are near, the faster one. Ours and albumentations take and give bytes,
`(height, width, channels)`, albumentations image by image; kornia takes batches of floats, `(channels, height, width)`.
Batches are of 64 (32 px) and 16 (224 px) photograph-like images. All run by turns in one process, the least CPU time of
several rounds counts: the machine may be shared, ratios still hold. `floats` is our own way through floats.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", NO_ALBUMENTATIONS_UPDATE="1")
import numpy as np
import torch

from haptera.catalog import entries, find

ROUNDS, SECONDS = 5, 0.03
Transform = Callable[[np.ndarray], np.ndarray]


def albumentation(name: str, side: int) -> list[Any]:
    """The transforms of albumentations that are nearest to a shift at severity 3."""
    import albumentations as a
    import cv2

    scale = side / 224
    taps, delta, radius = max(3, 2 * round(15 * scale) + 1), max(1, round(2 * scale)), max(1, round(6 * scale))
    sigma, waves = 3 * scale, 2.44 * scale
    area = {"downscale": cv2.INTER_AREA, "upscale": cv2.INTER_NEAREST}
    none = (0, 0)
    return {
        "gaussian_noise": lambda: [a.GaussNoise(std_range=(0.18, 0.18), p=1)],
        "shot_noise": lambda: [a.ShotNoise(scale_range=(1 / 12, 1 / 12), p=1)],
        "impulse_noise": lambda: [a.SaltAndPepper(amount=(0.09, 0.09), salt_vs_pepper=(0.5, 0.5), p=1)],
        "speckle_noise": lambda: [a.MultiplicativeNoise((0.65, 1.35), per_channel=True, elementwise=True, p=1)],
        "gaussian_blur": lambda: [a.GaussianBlur(blur_limit=0, sigma_limit=(sigma, sigma), p=1)],
        "defocus_blur": lambda: [a.Defocus(radius=(radius, radius), alias_blur=(0.5, 0.5), p=1)],
        "glass_blur": lambda: [a.GlassBlur(sigma=scale, max_delta=delta, iterations=3, mode="fast", p=1)],
        "motion_blur": lambda: [a.MotionBlur(blur_limit=(taps, taps), p=1)],
        "zoom_blur": lambda: [a.ZoomBlur(max_factor=(1.21, 1.21), step_factor=(0.02, 0.02), p=1)],
        "snow": lambda: [a.RandomSnow(method=method, p=1) for method in ("bleach", "texture")],
        "fog": lambda: [a.RandomFog(p=1)],
        "spatter": lambda: [a.Spatter(gauss_sigma=(2 * scale, 2 * scale), intensity=(0.5, 0.5), p=1)],
        "contrast": lambda: [a.RandomBrightnessContrast(none, (-0.8, -0.8), p=1)],
        "brightness": lambda: [a.RandomBrightnessContrast((0.3, 0.3), none, p=1)],
        "saturate": lambda: [
            a.HueSaturationValue(none, (60, 60), none, p=1), a.ColorJitter((1, 1), (1, 1), (2, 2), none, p=1),
        ],
        "elastic_transform": lambda: [a.ElasticTransform(alpha=12.2 * scale, sigma=max(1, waves), p=1)],
        "pixelate": lambda: [a.Downscale((0.4, 0.4), area, p=1), a.Downscale((0.4, 0.4), p=1)],
        "jpeg_compression": lambda: [a.ImageCompression("jpeg", (15, 15), p=1)],
    }.get(name, list)()  # fmt: skip


def kornias(name: str, side: int) -> list[Any]:
    """The same of kornia."""
    import kornia.augmentation as k

    scale = side / 224
    taps, sigma, waves = max(3, 2 * round(15 * scale) + 1), 3 * scale, 2.44 * scale
    width, wide = 2 * int(4 * sigma + 0.5) + 1, 2 * int(3 * waves + 0.5) + 1
    return {
        "gaussian_noise": lambda: [k.RandomGaussianNoise(std=0.18, p=1)],
        "impulse_noise": lambda: [k.RandomSaltAndPepperNoise(amount=(0.09, 0.09), salt_vs_pepper=(0.5, 0.5), p=1)],
        "gaussian_blur": lambda: [k.RandomGaussianBlur(width, (sigma, sigma), p=1)],
        "motion_blur": lambda: [k.RandomMotionBlur(taps, (-45.0, 45.0), (-1.0, 1.0), p=1)],
        "snow": lambda: [k.RandomSnow((0.5, 0.5), (2, 2), p=1)],
        "contrast": lambda: [k.RandomContrast((0.2, 0.2), p=1)],
        "brightness": lambda: [k.RandomBrightness((1.3, 1.3), p=1)],
        "saturate": lambda: [k.RandomSaturation((2, 2), p=1)],
        "elastic_transform": lambda: [k.RandomElasticTransform((wide, wide), (waves, waves), (0.1, 0.1), p=1)],
        "jpeg_compression": lambda: [k.RandomJPEG(15.0, p=1)],
    }.get(name, list)()


def photographs(count: int, side: int) -> np.ndarray:
    """Noise with the spectrum of photographs, bytes."""
    generator = np.random.default_rng(0)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    frequency[0, 0] = 1
    waves = generator.normal(size=(2, count, 4, *frequency.shape)) / frequency**1.2
    grey, *colours = np.fft.irfft2(waves[0] + 1j * waves[1], s=(side, side)).transpose(1, 0, 2, 3)
    light = np.stack([grey + 0.3 * colour for colour in colours], axis=-1)
    return np.ascontiguousarray((120 + 55 * light / light.std()).clip(0, 255).astype(np.uint8))


def seconds(call: Callable[[], object]) -> float:
    done, start = 0, time.process_time()
    while not done or time.process_time() - start < SECONDS:
        call()
        done += 1
    return (time.process_time() - start) / done


def measure(name: str, pixels: np.ndarray) -> dict[str, float]:
    """Images per CPU-second of everybody who can do it; of several transforms the fastest."""
    shift, side = find("shifts", name)(3), pixels.shape[1]
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous().float() / 255
    calls: list[tuple[str, Callable[[], object]]] = [
        ("floats", lambda: shift(images)),
        ("bytes", lambda: shift(pixels)),
    ]
    calls += [
        ("albumentations", lambda t=transform: [t(image=image)["image"] for image in pixels])
        for transform in albumentation(name, side)
    ]
    calls += [("kornia", lambda k=augment: k(images)) for augment in kornias(name, side)]
    for _, call in calls:
        call()
    least = [min(times) for times in zip(*[[seconds(call) for _, call in calls] for _ in range(ROUNDS)], strict=True)]
    rates: dict[str, float] = {}
    for (who, _), time_ in zip(calls, least, strict=True):
        rates[who] = max(rates.get(who, 0), len(pixels) / time_)
    return rates


def main() -> None:
    import cv2

    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    known = [name for name in entries("shifts") if find("shifts", name).tables]
    names = [name for name in sys.argv[1:] if name in known] or known
    sides = [int(word) for word in sys.argv[1:] if word.isdigit()] or [32, 224]
    ratios: dict[str, list[float]] = {"albumentations": [], "kornia": []}
    for side in sides:
        pixels = photographs(64 if side < 100 else 16, side)
        columns = "".join(f"{who:>16}{'ratio':>7}" for who in ratios)
        print(f"{side:>3} px{'':<15}{'floats':>9}{'bytes':>9}{columns}   images per CPU-second", flush=True)
        for name in names:
            rates = measure(name, pixels)
            line = f"{name:<20}{rates['floats']:>10.0f}{rates['bytes']:>9.0f}"
            for who, those in ratios.items():
                if who in rates:
                    those.append(rates["bytes"] / rates[who])
                    line += f"{rates[who]:>16.0f}{those[-1]:>7.2f}"
                else:
                    line += f"{'–':>16}{'':>7}"
            print(line, flush=True)
    for who, those in ratios.items():
        if those:
            mean = np.exp(np.mean(np.log(those)))
            print(f"{who}: geometric mean of the ratios {mean:.1f}, lowest {min(those):.2f}")


if __name__ == "__main__":
    main()
