"""Does relative stability go with the error? Ten architectures on Fashion-MNIST, three seeds, with intervals.

    python experiments/stability_on_images.py [FOLDER]

`fashion-mnist.npz` (train_images, train_labels, test_images, test_labels) is read from $HAPTERA_DATA, by default
~/.cache/haptera, where the weights of every network are kept, so a stopped run goes on. The first run takes about 35
minutes on one core. Into FOLDER, by default `docs/evidence/results`, it writes `stability_on_images.csv`, one row for
each network, `.txt`, the tables, and `.svg`, error against R, and R against the size of the training set.

Every network is trained with SGD and a cosine schedule until its training loss is flat (the table says how much of it
the last tenth of training took away); the loss is cross-entropy, images are translated and mirrored. R, D and G are
medians over 501 test images at δ = 1 and c = 3, the error is over all 10,000. Over seeds they are log-averaged. Before
training BatchNorm has mean 0 and variance 1. The second part trains one residual network on subsets of the data.
"""
