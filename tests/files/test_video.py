"""Videos: a frame has one number and one content, wherever reading begins."""

from fractions import Fraction

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.files import video as module
from haptera.files.video import Video, write_video

av = pytest.importorskip("av")


def frames(number, height=48, width=64):
    """Grey frames, each 2 brighter than the one before, with a bright column that walks."""
    for place in range(number):
        picture = np.full((height, width, 3), 20 + 2 * place, np.uint8)
        picture[:, place % width] = 250
        yield picture


def brightness(pictures):
    return [int(np.median(picture)) for picture in pictures]


def encode(path, number, keys_every, between=2, **more):
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"g": str(keys_every), "bf": str(between)} | more)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        for picture in frames(number):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize(("keys_every", "suffix"), [(5, "mp4"), (12, "mkv"), (250, "mp4"), (7, "avi")])
def test_a_frame_is_the_same_wherever_reading_begins(tmp_path, keys_every, suffix):
    video = Video(encode(tmp_path / f"clip.{suffix}", 60, keys_every))
    assert (len(video), video.height, video.width, video.rate) == (60, 48, 64, 30)
    every = list(video.read())
    assert len(every) == 60
    assert np.allclose(brightness(every), [20 + 2 * place for place in range(60)], atol=3)
    for start, stop in ((0, 1), (1, 4), (5, 6), (13, 29), (36, 60), (59, 60), (50, 99)):
        part = list(video.read(start, stop))
        assert len(part) == min(stop, 60) - start
        assert all(np.array_equal(one, two) for one, two in zip(part, every[start:stop], strict=True))
    assert list(video.read(60)) == []


@pytest.mark.parametrize("keys_every", [4, 250])
def test_a_sample_comes_from_all_over_the_video(tmp_path, keys_every):
    video = Video(encode(tmp_path / "clip.mp4", 60, keys_every))
    sample = brightness(video.sample(12))
    assert len(set(sample)) == 12
    assert min(sample) < 32
    assert max(sample) > 118
    thirds = np.histogram(sample, [0, 60, 100, 200])[0]
    assert (thirds >= 3).all()
    assert len(video.sample(100)) == 60


@pytest.mark.parametrize("keys_every", [4, 250])
def test_frames_that_nobody_asked_for_are_not_made_pixels_of(tmp_path, monkeypatch, keys_every):
    video = Video(encode(tmp_path / "clip.mp4", 60, keys_every))
    every, real, made = list(video.read()), Video._pixels, []
    monkeypatch.setattr(Video, "_pixels", lambda self, frame: made.append(1) or real(self, frame))
    found = dict(video.read_some([3, 20, 21, 59]))
    assert len(made) == 4
    assert all(np.array_equal(found[number], every[number]) for number in (3, 20, 21, 59))


def test_key_frames_at_which_decoding_cannot_begin_are_not_entered(tmp_path, monkeypatch):
    path = encode(tmp_path / "clip.mp4", 60, 10, 0, **{"x264-params": "intra-refresh=1:keyint=10"})
    video = Video(path)
    every = list(video.read())
    for start in (11, 20, 35):
        assert np.array_equal(next(video.read(start, start + 1)), every[start])
    chosen = video.choose(12)
    for number, frame in video.read_some(chosen):
        assert np.array_equal(frame, every[number])
    monkeypatch.setattr(Video, "_enterable", lambda self, keys: False)
    sound = Video(encode(tmp_path / "sound.mp4", 60, 4))
    assert sound.choose(7) == [0, 10, 20, 30, 39, 49, 59]  # evenly, as key frames are of no use
    assert np.allclose(brightness(sound.sample(7)), [20 + 2 * place for place in sound.choose(7)], atol=3)


def copied(path, out, first):
    """The packets of a video from frame `first` of it on, and a cut 15 frames from its beginning."""
    with av.open(str(path)) as source, av.open(str(out), "w") as container:
        stream = source.streams.video[0]
        own = container.add_stream_from_template(stream)
        length = int(1 / (30 * stream.time_base))
        for packet in source.demux(stream):
            if packet.size and packet.pts >= first * length:
                packet.pts, packet.dts = packet.pts - 15 * length, packet.dts - 15 * length
                packet.stream = own
                container.mux(packet)
    return out


@pytest.mark.parametrize("between", [0, 3])
def test_frames_before_the_cut_of_a_trimmed_file_have_no_number(tmp_path, caplog, between):
    """They are in the file for those after them to be decoded, as `ffmpeg -ss 0.5 -c copy` leaves them."""
    video = Video(copied(encode(tmp_path / "clip.mp4", 60, 12, between), tmp_path / "trimmed.mp4", 12))
    every = list(video.read())
    assert len(video) == len(every) == 45
    assert np.allclose(brightness(every), [20 + 2 * place for place in range(15, 60)], atol=3)
    for start in (1, 9, 20, 40):
        assert np.array_equal(next(video.read(start, start + 1)), every[start])
    for number, frame in video.read_some(video.choose(11)):
        assert np.array_equal(frame, every[number])
    assert "cut off" not in caplog.text


def test_times_in_a_container_without_an_index_are_not_trusted(tmp_path):
    """Seeking in an MPEG stream comes out at another frame than the one that was asked for."""
    given = encode(tmp_path / "clip.mp4", 60, 12, 3)
    with av.open(str(given)) as source, av.open(str(tmp_path / "clip.ts"), "w") as container:
        stream = container.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.size:
                packet.stream = stream
                container.mux(packet)
    video = Video(tmp_path / "clip.ts")
    every = list(video.read())
    assert np.allclose(brightness(every), [20 + 2 * place for place in range(60)], atol=4)
    for start in (13, 20, 36, 57, 59):
        part = list(video.read(start, start + 2))
        assert len(part) == min(2, 60 - start)
        assert all(np.array_equal(one, two) for one, two in zip(part, every[start:], strict=False))


def test_frames_at_uneven_distances_have_their_own_times(tmp_path):
    """A camera that pauses for two seconds after frame 9."""
    times = [number * 33 + 2000 * (number > 9) for number in range(20)]
    with av.open(str(tmp_path / "clip.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        stream.codec_context.time_base = stream.time_base = Fraction(1, 1000)
        for time, picture in zip(times, frames(20), strict=True):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    video = Video(tmp_path / "clip.mp4")
    assert [video.seconds(number) for number in (0, 9, 10, 19)] == pytest.approx([0.0, 0.297, 2.33, 2.627], abs=0.002)
    assert np.allclose(brightness(video.read()), [20 + 2 * place for place in range(20)], atol=3)
    even = Video(encode(tmp_path / "even.mp4", 60, 12))
    assert [even.seconds(number) for number in (0, 30, 59)] == pytest.approx([0.0, 1.0, 59 / 30], abs=0.002)


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_frames_are_turned_as_the_file_says_they_are_shown(tmp_path, degrees):
    """A camera that was held sideways; numbers of degrees are against the clock, as FFmpeg has them."""
    corner = np.full((48, 64, 3), 30, np.uint8)
    corner[:16, :16] = 240
    with av.open(str(tmp_path / "clip.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        stream.set_display_rotation(degrees)
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(corner, format="rgb24")))
        container.mux(stream.encode())
    video = Video(tmp_path / "clip.mp4")
    expected = np.rot90(corner, degrees // 90)
    assert (video.height, video.width) == expected.shape[:2]
    for frame in (next(video.read()), video.sample(3)[2]):
        assert frame.shape == expected.shape
        assert np.abs(frame.astype(int) - expected).max() < 30


def test_what_was_written_is_read_back(tmp_path):
    assert write_video(tmp_path / "out.mp4", frames(9, 49, 65), Fraction(10)) == 9
    video = Video(tmp_path / "out.mp4")
    assert (len(video), video.height, video.width, video.rate) == (9, 48, 64, 10)
    assert np.allclose(brightness(video.read()), [20 + 2 * place for place in range(9)], atol=3)


def test_bad_files_are_refused_with_a_sentence(tmp_path):
    with pytest.raises(HapteraError, match="there is no video"):
        Video(tmp_path / "clip.mp4")
    (tmp_path / "clip.mp4").write_bytes(b"not a video" * 100)
    with pytest.raises(HapteraError, match="cannot read the video"):
        Video(tmp_path / "clip.mp4")
    with pytest.raises(HapteraError, match=r"a name ending in \.mp4"):
        write_video(tmp_path / "out.gif", frames(2), Fraction(10))
    with pytest.raises(HapteraError, match="no frames to write"):
        write_video(tmp_path / "out.mp4", [], Fraction(10))
    assert not (tmp_path / "out.mp4").exists()
    assert module.is_video(tmp_path / "A.MP4")


@pytest.mark.parametrize(("suffix", "share"), [("mkv", 0.5), ("avi", 0.8)])
def test_a_file_that_was_cut_off_is_read_as_far_as_it_goes_and_says_so(tmp_path, suffix, share, caplog):
    path = encode(tmp_path / f"clip.{suffix}", 60, 5)
    every = list(Video(path).read())
    assert "cut off" not in caplog.text
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    part = list(Video(path).read())
    assert 5 < len(part) < 54
    assert all(np.array_equal(one, two) for one, two in zip(part[:-1], every, strict=False))
    assert f"{path} has {len(Video(path))} frames where its header says 60; it may have been cut off" in caplog.text


def spoil(path, numbers):
    """Write zeros over the packets of some frames of a video in which every frame is a key frame."""
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(container.streams.video[0]) if packet.size]
        places = [(packets[number].pos, packets[number].size) for number in numbers]
    content = bytearray(path.read_bytes())
    for place, size in places:
        content[place : place + size] = bytes(size)
    path.write_bytes(content)


def test_frames_after_those_that_cannot_be_decoded_keep_their_numbers(tmp_path, caplog):
    path = encode(tmp_path / "clip.mp4", 60, 1, 0)
    every = list(Video(path).read())
    spoil(path, [3, 30, 31])
    video = Video(path)
    found = dict(video.read_numbered())
    assert (len(video), sorted(set(range(60)) - set(found))) == (60, [3, 30, 31])
    assert all(np.array_equal(frame, every[number]) for number, frame in found.items())
    assert [number for number, _ in video.read_numbered(29, 34)] == [29, 32, 33]
    assert [number for number, _ in video.read_numbered(30, 32)] == []
    assert [number for number, _ in video.read_some([2, 3, 30, 59])] == [2, 59]
    assert f"{path} is damaged, frames that cannot be decoded are missing" in caplog.text
    assert caplog.text.count("is damaged") == 1
    spoil(path, range(60))
    with pytest.raises(HapteraError, match="is damaged: none of its 60 frames can be decoded"):
        Video(path)
