"""Networks of Keras, of TensorFlow's half of transformers and of Flax with random weights, as tf2onnx converts them: one ONNX
file each.

    python3 bench/peers/exported_tensorflow.py FOLDER [NAME...]

Needs an environment of its own: `pip install tensorflow-cpu==2.15.1 tf2onnx==1.16.1 transformers==4.33.3 jax==0.4.20
jaxlib==0.4.20 flax==0.7.5 onnx==1.16.2 "numpy<2" "scipy<1.13" "ml-dtypes~=0.2.0"`. What cannot be converted is left out with a
line that says so. Batch 1, f32, opset 15. Compare with `make bench-peers OTHERS=FOLDER PEERS="--parts others"`."""
import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import tensorflow as tf
import tf2onnx

K, L = tf.keras, tf.keras.layers
TEXT = dict(vocab_size=1000, hidden_size=256, num_hidden_layers=3, num_attention_heads=4, intermediate_size=512)
SEEN = {k: v for k, v in TEXT.items() if k != "vocab_size"}
IDS = dict(input_ids=((1, 64), "int32"), attention_mask=((1, 64), "int32"))
PICTURE = dict(pixel_values=((1, 3, 224, 224), "float32"))
# Of both halves of transformers: class, configuration class, what differs from its defaults, inputs.
HALVES = {
    "bert": ("BertModel", "BertConfig", TEXT, IDS),
    "electra": ("ElectraModel", "ElectraConfig", TEXT, IDS),
    "gpt2": ("GPT2Model", "GPT2Config", dict(vocab_size=1000, n_embd=256, n_layer=3, n_head=4, use_cache=False), IDS),
    "t5": ("T5EncoderModel", "T5Config", dict(vocab_size=1000, d_model=256, num_layers=3, num_heads=4, d_ff=512), IDS),
    "deberta": ("DebertaV2Model", "DebertaV2Config",
                dict(TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=32), IDS),
    "gptj": ("GPTJModel", "GPTJConfig",
             dict(vocab_size=1000, n_embd=256, n_layer=3, n_head=4, rotary_dim=32, n_positions=128), IDS),
    "vit": ("ViTModel", "ViTConfig", SEEN, PICTURE),
    "beit": ("BeitModel", "BeitConfig", dict(SEEN, image_size=224, use_relative_position_bias=True), PICTURE),
    "clip": ("CLIPVisionModel", "CLIPVisionConfig", dict(SEEN, image_size=224, patch_size=32), PICTURE),
    "resnet": ("ResNetModel", "ResNetConfig", dict(depths=[1, 1, 1, 1]), PICTURE),
}


def residual(x, filters, stride):
    x = L.ReLU()(L.BatchNormalization()(L.Conv1D(filters, 7, strides=stride, padding="same")(x)))
    y = L.Activation("gelu")(L.BatchNormalization()(L.Conv1D(filters, 3, padding="same")(x)))
    return L.Add()([x, y])


def conv1d(x):
    for filters, stride in ((32, 1), (64, 2), (128, 2)):
        x = residual(x, filters, stride)
    return L.Dense(5, activation="softmax")(L.GlobalAveragePooling1D()(x))


def tcn(x):
    for d in (1, 2, 4, 8, 16):
        y = L.LayerNormalization()(L.Conv1D(64, 3, dilation_rate=d, padding="causal", activation="relu")(x))
        y = L.Conv1D(64, 3, dilation_rate=d, padding="causal", activation="relu")(y)
        x = L.Add()([L.Conv1D(64, 1)(x), y])
    return L.Dense(1)(x)


def attention(x):
    for _ in range(3):
        y = L.LayerNormalization()(x)
        x = L.Add()([x, L.MultiHeadAttention(8, 32)(y, y)])
        y = L.Dense(64)(L.Dense(256, activation="gelu")(L.LayerNormalization()(x)))
        x = L.Add()([x, y])
    return L.Dense(10)(L.Flatten()(x))


def text_cnn(x):
    x = L.MaxPooling1D(4)(L.Conv1D(128, 5, activation="relu")(L.Embedding(1000, 64)(x)))
    return L.Dense(4)(L.GlobalMaxPooling1D()(L.Conv1D(128, 5, activation="relu")(x)))


def unet(x):
    kept = []
    for f in (16, 32, 64, 128):
        x = L.Conv2D(f, 3, padding="same", activation="relu")(x)
        kept.append(x)
        x = L.MaxPool2D()(x)
    for f, k in zip((128, 64, 32, 16), kept[::-1]):
        x = L.Concatenate()([L.Conv2DTranspose(f, 2, strides=2, padding="same")(x), k])
        x = L.Conv2D(f, 3, padding="same", activation="relu")(x)
    return L.Conv2D(1, 1, activation="sigmoid")(x)


OWN = {
    "conv1d": (conv1d, (1024, 12), "float32"),
    "tcn": (tcn, (256, 16), "float32"),
    "mha": (attention, (128, 64), "float32"),
    "textcnn": (text_cnn, (200,), "int32"),
    "unet": (unet, (128, 128, 3), "float32"),
    "lstm": (lambda x: L.Dense(3)(L.LSTM(64)(L.Bidirectional(L.LSTM(64, return_sequences=True))(x))), (50, 16), "float32"),
    "gru": (lambda x: L.Dense(3)(L.GRU(64)(x)), (50, 16), "float32"),
    "rnn": (lambda x: L.SimpleRNN(64)(x), (50, 16), "float32"),
    "conv3d": (lambda x: L.MaxPool3D()(L.Conv3D(32, 3, activation="relu")(x)), (16, 56, 56, 3), "float32"),
    "convlstm": (lambda x: L.ConvLSTM2D(16, 3, padding="same")(x), (6, 32, 32, 3), "float32"),
}
APPLICATIONS = "DenseNet121 EfficientNetB0 MobileNetV2 NASNetMobile RegNetY004 ResNetRS50 Xception InceptionV3".split()


def specs(inputs):
    return [tf.TensorSpec(shape, kind, name=name) for name, (shape, kind) in inputs.items()]


def of_keras(name):
    if name in OWN:
        build, shape, kind = OWN[name]
        x = K.Input(shape, dtype=kind, batch_size=1)
        model = K.Model(x, build(x))
    else:
        model = getattr(K.applications, name)(weights=None)
    sizes = [[1 if d is None else d for d in i.shape] for i in model.inputs]
    return model, [tf.TensorSpec(s, i.dtype, name="in%d" % k) for k, (s, i) in enumerate(zip(sizes, model.inputs))]


def of_half(name):
    import transformers
    half, name = name.split("_")
    kind, config, options, inputs = HALVES[name]
    model = getattr(transformers, half + kind)(getattr(transformers, config)(**options))
    names = list(inputs)
    if half == "Flax":
        from jax.experimental import jax2tf
        call = jax2tf.convert(lambda *a: model(**dict(zip(names, a)), params=model.params)[0],
                              native_serialization=False, enable_xla=False)
    else:
        def call(*a):
            return [v for v in model(dict(zip(names, a)), training=False).values() if tf.is_tensor(v)]
    return tf.function(lambda *a: call(*a), input_signature=specs(inputs), autograph=False), specs(inputs)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    every = list(OWN) + APPLICATIONS + [h + "_" + n for h in ("TF", "Flax") for n in HALVES]
    os.makedirs(folder, exist_ok=True)
    unknown = [n for n in sys.argv[2:] if n not in every]
    if unknown:
        sys.exit("exported_tensorflow.py: no such network: " + ", ".join(unknown))
    for name in sys.argv[2:] or every:
        path = os.path.join(folder, name.lower() + ".onnx")
        tf.random.set_seed(7)
        try:
            if "_" in name:
                function, inputs = of_half(name)
                tf2onnx.convert.from_function(function, inputs, opset=15, output_path=path)
            else:
                model, inputs = of_keras(name)
                tf2onnx.convert.from_keras(model, inputs, opset=15, output_path=path)
            print("%s: %.0f MB" % (name, os.path.getsize(path) / 1e6), flush=True)
        except Exception as why:  # whatever the converter cannot do
            print("%s: left out: %s: %s" % (name, type(why).__name__, " ".join(str(why).split())[-200:]), flush=True)


if __name__ == "__main__":
    main()
