"""Families of shifts, by name: right of Outputs there are only names, so no class of a shift is imported here."""

FAMILIES = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
    "holdout": ("speckle_noise", "gaussian_blur", "spatter", "saturate"),
}
"""Groups in which errors are averaged; settings are chosen on the last one, results are those of the others."""
HELD_OUT = {"speckle_noise": "noise", "gaussian_blur": "blur", "spatter": "weather", "saturate": "digital"}
"""Hold-out shift -> the family it stands for."""
FAMILY = {shift: family for family, shifts in FAMILIES.items() for shift in shifts} | HELD_OUT
"""Shift -> its family, `noise`, `blur`, `weather` or `digital`."""
