"""Networks that are no classifiers: what generates, hears, draws, remembers, forecasts, recommends or branches.

    python3 bench/peers/exported_kinds.py FOLDER [NAME...]

Random weights, small configurations. Needs `pip install torch==2.15.0 transformers==5.24.0 diffusers==0.42.1
onnx==1.23.2 onnxscript==0.7.2`; what is not installed or cannot be exported is left out with a line that says so.
Decoders have their caches of keys and values as inputs and outputs, and dimensions for tokens and past that stay open.
For networks with open dimensions NAME.shapes beside the file says the shapes of its uses, a line each: what it is
called, then what `hone --shape` is given. decoding.py runs decoders token by token."""
import torch
from torch import nn

from exporting import run, shape_text, tensors

VOCABULARY = 4000
PAST, PROMPT = 512, 64  # of the uses in NAME.shapes
HIDDEN = dict(hidden_size=512, intermediate_size=1536, num_hidden_layers=4, num_attention_heads=8)
GROUPED = dict(HIDDEN, num_key_value_heads=2)
# Of transformers: class, configuration class, what differs from its defaults.
DECODERS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(n_embd=512, n_layer=4, n_head=8)),
    "opt": ("OPTForCausalLM", "OPTConfig", dict(hidden_size=512, word_embed_proj_dim=512, num_hidden_layers=4,
                                                num_attention_heads=8, ffn_dim=1536)),
    "gptneox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", HIDDEN),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(hidden_size=512, n_layer=4, n_head=8)),
    "falcon": ("FalconForCausalLM", "FalconConfig", dict(hidden_size=512, num_hidden_layers=4, num_attention_heads=8)),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "llama_wide": ("LlamaForCausalLM", "LlamaConfig", dict(GROUPED, hidden_size=768, num_attention_heads=12,
                                                          num_key_value_heads=4, intermediate_size=2048)),
    "mistral": ("MistralForCausalLM", "MistralConfig", dict(GROUPED, sliding_window=128)),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", dict(GROUPED, num_local_experts=4, num_experts_per_tok=2)),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", dict(GROUPED, head_dim=64)),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", dict(GROUPED, head_dim=64)),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", dict(GROUPED, head_dim=64, sliding_window=128)),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", dict(GROUPED, head_dim=64, sliding_window=128)),
    "phi": ("PhiForCausalLM", "PhiConfig", HIDDEN),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", dict(GROUPED, pad_token_id=0)),
    "cohere": ("CohereForCausalLM", "CohereConfig", GROUPED),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", GROUPED),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", GROUPED),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", dict(GROUPED, sliding_window=None)),
    "granite": ("GraniteForCausalLM", "GraniteConfig", GROUPED),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config", dict(GROUPED, pad_token_id=0)),
    "gptoss": ("GptOssForCausalLM", "GptOssConfig", dict(GROUPED, head_dim=64, num_local_experts=4,
                                                         sliding_window=128)),
    "codegen": ("CodeGenForCausalLM", "CodeGenConfig", dict(n_embd=512, n_layer=4, n_head=8, rotary_dim=32)),
}
WIDTH = dict(d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6,
             encoder_ffn_dim=1536, decoder_ffn_dim=1536)
# Decoders with cross attention: as above.
CROSSED = {
    "t5_dec": ("T5ForConditionalGeneration", "T5Config", dict(num_layers=4, d_model=384, num_heads=6, d_ff=1536,
                                                              decoder_start_token_id=0)),
    "bart_dec": ("BartForConditionalGeneration", "BartConfig", WIDTH),
    "marian_dec": ("MarianMTModel", "MarianConfig", dict(WIDTH, decoder_start_token_id=0, pad_token_id=0)),
    "whisper_dec": ("WhisperForConditionalGeneration", "WhisperConfig",
                    dict(WIDTH, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)),
}
AUDIO = {
    "wav2vec2": ("Wav2Vec2ForCTC", "Wav2Vec2Config", HIDDEN, "wave"),
    "hubert": ("HubertForCTC", "HubertConfig", HIDDEN, "wave"),
    "wavlm": ("WavLMModel", "WavLMConfig", HIDDEN, "wave"),
    "sew": ("SEWModel", "SEWConfig", HIDDEN, "wave"),
    "data2vec_audio": ("Data2VecAudioModel", "Data2VecAudioConfig", HIDDEN, "wave"),
    "wav2vec2_conformer": ("Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", HIDDEN, "wave"),
    "wav2vec2_bert": ("Wav2Vec2BertModel", "Wav2Vec2BertConfig", HIDDEN, "frames160"),
    "whisper_enc": ("WhisperEncoder", "WhisperConfig", dict(WIDTH, max_source_positions=500), "mels80x1000"),
    "ast": ("ASTForAudioClassification", "ASTConfig", dict(HIDDEN, max_length=256), "spectrum"),
    "encodec_enc": ("EncodecModel", "EncodecConfig", {}, "encode"),
    "encodec_dec": ("EncodecModel", "EncodecConfig", {}, "decode"),
    "vits": ("VitsModel", "VitsConfig", dict(vocab_size=120, use_stochastic_duration_prediction=False), "text"),
    "hifigan": ("SpeechT5HifiGan", "SpeechT5HifiGanConfig", {}, "spectrogram"),
    "univnet": ("UnivNetModel", "UnivNetConfig", {}, "univnet"),
    "parakeet": ("ParakeetForCTC", "ParakeetCTCConfig", {}, "parakeet"),
    "moonshine_enc": ("MoonshineEncoder", "MoonshineConfig", dict(encoder_num_hidden_layers=4), "wave"),
    "speech_to_text_enc": ("Speech2TextEncoder", "Speech2TextConfig", dict(WIDTH), "frames80"),
}
SERIES = {
    "patchtst": ("PatchTSTForPrediction", "PatchTSTConfig",
                 dict(num_input_channels=7, context_length=336, patch_length=16, patch_stride=8, prediction_length=96)),
    "patchtsmixer": ("PatchTSMixerForPrediction", "PatchTSMixerConfig",
                     dict(num_input_channels=7, context_length=512, patch_length=16, patch_stride=16)),
    "informer": ("InformerModel", "InformerConfig",
                 dict(prediction_length=24, context_length=96, lags_sequence=[1, 2, 3, 4], num_time_features=2,
                      d_model=256)),
}


class Flat(nn.Module):
    """Named inputs, one row of tensors out."""

    def __init__(self, model, names, call=None):
        super().__init__()
        self.model, self.names, self.call = model, names, call

    def forward(self, *args):
        if self.call:
            return tuple(tensors(self.call(self.model, *args)))
        return tuple(tensors(self.model(**dict(zip(self.names, args)))))


class Step(nn.Module):
    """A decoder with its caches as tensors: tokens, mask, then keys and values of each layer; logits, then the same."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, past):
        from transformers import DynamicCache
        cache = DynamicCache(list(zip(past[0::2], past[1::2])))
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, cache=cache, use_cache=True)
        return out.logits, *[t for layer in cache.layers for t in (layer.keys, layer.values)]


class CrossStep(nn.Module):
    """A decoder that looks at an encoder: tokens, keys and values of itself, those of the encoder, which stay."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, decoder_input_ids, past, crossed):
        from transformers import DynamicCache, EncoderDecoderCache
        own = DynamicCache(list(zip(past[0::2], past[1::2])))
        other = DynamicCache(list(zip(crossed[0::2], crossed[1::2])))
        cache = EncoderDecoderCache(own, other)
        width = self.model.config.d_model
        seen = torch.zeros(1, crossed[0].shape[2], width)  # only its length is looked at
        decoder = self.model.get_decoder()
        out = decoder(input_ids=decoder_input_ids, encoder_hidden_states=seen, cache=cache, use_cache=True)
        logits = self.model.get_output_embeddings()(out.last_hidden_state)
        return logits, *[t for layer in own.layers for t in (layer.keys, layer.values)]


def of(kind, config, options):
    import transformers
    return getattr(transformers, kind)(getattr(transformers, config)(**options)).eval()


def caches_of(config):
    """Layers, heads of keys, depth of a head."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    depth = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return config.num_hidden_layers, heads, depth


def decoder(name):
    kind, config, options = DECODERS[name]
    model = of(kind, config, dict(dict(vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2), **options))
    layers, heads, depth = caches_of(model.config)
    if name == "falcon":
        heads = 1
    past = [torch.randn(1, heads, 11, depth) for _ in range(2 * layers)]
    args = (torch.randint(5, 100, (1, 3)), torch.ones(1, 14, dtype=torch.long), past)
    names = ["past.%d.%s" % (i // 2, "kv"[i % 2]) for i in range(2 * layers)]
    any_of = torch.export.Dim.DYNAMIC
    dynamic = ({1: any_of}, {1: any_of}, [{2: any_of} for _ in past])
    uses = {}
    for use, tokens, before in (("decode", 1, PAST), ("prefill", PROMPT, 0), ("append", PROMPT, PAST)):
        uses[use] = [shape_text("input_ids", (1, tokens)), shape_text("attention_mask", (1, tokens + before))]
        uses[use] += [shape_text(n, (1, heads, before, depth)) for n in names]
    return Step(model), args, dict(dynamic_shapes=dynamic, input_names=["input_ids", "attention_mask"] + names,
                                   output_names=["logits"] + [n.replace("past", "present") for n in names]), uses


def crossed(name):
    kind, config, options = CROSSED[name]
    model = of(kind, config, dict(vocab_size=VOCABULARY, **options))
    layers, heads, depth = 4, 6, 64
    past = [torch.randn(1, heads, 11, depth) for _ in range(2 * layers)]
    other = [torch.randn(1, heads, 29, depth) for _ in range(2 * layers)]
    names = ["past.%d.%s" % (i // 2, "kv"[i % 2]) for i in range(2 * layers)]
    others = [n.replace("past", "crossed") for n in names]
    any_of = torch.export.Dim.DYNAMIC
    dynamic = ({1: any_of}, [{2: any_of} for _ in past], [{2: any_of} for _ in other])
    uses = {}
    for use, tokens, before, seen in (("decode", 1, 128, 512), ("prefill", PROMPT, 0, 512)):
        uses[use] = [shape_text("decoder_input_ids", (1, tokens))]
        uses[use] += [shape_text(n, (1, heads, before, depth)) for n in names]
        uses[use] += [shape_text(n, (1, heads, seen, depth)) for n in others]
    return CrossStep(model), (torch.randint(5, 100, (1, 3)), past, other), \
        dict(dynamic_shapes=dynamic, input_names=["decoder_input_ids"] + names + others,
             output_names=["logits"] + [n.replace("past", "present") for n in names]), uses


class MambaStep(nn.Module):
    """One token of Mamba with its states of convolution and recurrence as tensors."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, conv, state):
        from transformers import DynamicCache
        cache = DynamicCache(config=self.model.config)
        for i, layer in enumerate(cache.layers):
            cache.update_conv_state(conv[i], i)
            cache.update_recurrent_state(state[i], i)
        out = self.model(input_ids=input_ids, cache=cache, use_cache=True)
        return out.logits, *[cache.get_conv_state(i) for i in range(len(cache.layers))], \
            *[cache.get_recurrent_state(i) for i in range(len(cache.layers))]


def mamba(name):
    options = dict(vocab_size=VOCABULARY, hidden_size=256, num_hidden_layers=4, state_size=16)
    model = of("MambaForCausalLM", "MambaConfig", options)
    if name == "mamba":
        model.config.use_cache = False
        return Flat(model, ["input_ids"]), (torch.randint(5, 100, (1, 16)),), {}, {}
    inner = model.config.intermediate_size
    conv = [torch.randn(1, inner, 4) for _ in range(4)]
    state = [torch.randn(1, inner, 16) for _ in range(4)]
    return MambaStep(model), (torch.randint(5, 100, (1, 1)), conv, state), {}, {}


def audio(name):
    kind, config, options, given = AUDIO[name]
    import transformers
    if name == "whisper_enc":
        from transformers.models.whisper.modeling_whisper import WhisperEncoder
        return Flat(WhisperEncoder(transformers.WhisperConfig(**options)).eval(), ["input_features"]), \
            (torch.randn(1, 80, 1000),), {}, {}
    if name == "moonshine_enc":
        from transformers.models.moonshine.modeling_moonshine import MoonshineEncoder
        return Flat(MoonshineEncoder(transformers.MoonshineConfig(**options)).eval(), ["input_values"]), \
            (torch.randn(1, 16000),), {}, {}
    if name == "speech_to_text_enc":
        from transformers.models.speech_to_text.modeling_speech_to_text import Speech2TextEncoder
        return Flat(Speech2TextEncoder(transformers.Speech2TextConfig(**options)).eval(), ["input_features"]), \
            (torch.randn(1, 400, 80),), {}, {}
    model = of(kind, config, options)
    if hasattr(model, "remove_weight_norm") and name == "hifigan":
        model.remove_weight_norm()
    if given == "wave":
        return Flat(model, ["input_values"]), (torch.randn(1, 16000),), {}, {}
    if given == "frames160":
        return Flat(model, ["input_features"]), (torch.randn(1, 200, 160),), {}, {}
    if given == "spectrum":
        return Flat(model, ["input_values"]), (torch.randn(1, 256, 128),), {}, {}
    if given == "encode":
        return Flat(model, ["wave"], lambda m, x: m.encoder(x)), (torch.randn(1, 1, 24000),), {}, {}
    if given == "decode":
        return Flat(model, ["codes"], lambda m, x: m.decoder(m.quantizer.decode(x))), \
            (torch.randint(0, 90, (2, 1, 75)),), {}, {}
    if given == "text":
        return Flat(model, ["input_ids"]), (torch.randint(1, 50, (1, 40)),), {}, {}
    if given == "spectrogram":
        return Flat(model, ["spectrogram"]), (torch.randn(1, 50, 80),), {}, {}
    if given == "univnet":
        return Flat(model, ["input_features", "noise_sequence"]), (torch.randn(1, 40, 100), torch.randn(1, 40, 64)), \
            {}, {}
    return Flat(model, ["input_features"]), (torch.randn(1, 200, 80),), {}, {}


class Vad(nn.Module):
    """A detector of speech: a Fourier transform as a convolution, four convolutions, an LSTM cell with its state."""

    def __init__(self):
        super().__init__()
        self.spectrum = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        widths = [129, 128, 64, 64, 128]
        self.body = nn.Sequential(*[nn.Sequential(nn.Conv1d(widths[i], widths[i + 1], 3, 2 if i in (1, 2) else 1, 1),
                                                  nn.ReLU()) for i in range(4)])
        self.cell, self.head = nn.LSTM(128, 128, batch_first=True), nn.Conv1d(128, 1, 1)

    def forward(self, wave, h, c):
        x = self.spectrum(nn.functional.pad(wave.unsqueeze(1), (0, 64), mode="reflect"))
        x = torch.sqrt(x[:, :129] ** 2 + x[:, 129:] ** 2)
        x, (h, c) = self.cell(self.body(x).transpose(1, 2), (h, c))
        return torch.sigmoid(self.head(torch.relu(x.transpose(1, 2)))).mean(2), h, c


class Recurrent(nn.Module):
    def __init__(self, kind, both=False, layers=2, packed=False, first=True):
        super().__init__()
        self.cells = getattr(nn, kind)(128, 256, layers, batch_first=first, bidirectional=both)
        self.head, self.packed, self.first = nn.Linear(512 if both else 256, 64), packed, first

    def forward(self, x, lengths=None):
        if self.packed:
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=self.first, enforce_sorted=False)
            x = nn.utils.rnn.pad_packed_sequence(self.cells(packed)[0], batch_first=self.first)[0]
        else:
            x = self.cells(x)[0]
        return self.head(x).log_softmax(-1)


class Dlrm(nn.Module):
    """Embedding bags, two stacks of layers, products of each with each."""

    def __init__(self, tables=26, rows=5000, width=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.below = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, width),
                                   nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.above = nn.Sequential(nn.Linear(width + pairs, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                   nn.Linear(256, 1), nn.Sigmoid())
        self.register_buffer("row", torch.tril_indices(tables + 1, tables + 1, -1)[0])
        self.register_buffer("column", torch.tril_indices(tables + 1, tables + 1, -1)[1])

    def forward(self, dense, sparse):
        x = self.below(dense)
        rows = torch.stack([x] + [t(sparse[:, i]) for i, t in enumerate(self.tables)], 1)
        products = torch.bmm(rows, rows.transpose(1, 2))
        return self.above(torch.cat([x, products[:, self.row, self.column]], 1))


class WideDeep(nn.Module):
    def __init__(self, fields=40, rows=100000, width=16):
        super().__init__()
        self.deep, self.wide = nn.Embedding(rows, width), nn.Embedding(rows, 1)
        self.register_buffer("start", torch.arange(fields) * (rows // fields))
        self.layers = nn.Sequential(nn.Linear(fields * width, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(),
                                    nn.Linear(400, 1))

    def forward(self, fields):
        i = fields + self.start
        e = self.deep(i)
        second = 0.5 * (e.sum(1) ** 2 - (e ** 2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(self.layers(e.flatten(1)) + self.wide(i).sum(1) + second)


class GraphConv(nn.Module):
    """Messages along edges: gathered, added up by index_add, divided by the degree."""

    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(3)])

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        degree = torch.zeros(x.shape[0]).index_add(0, target, torch.ones(target.shape[0])).clamp(min=1).unsqueeze(1)
        for layer in self.layers:
            x = torch.relu(layer(torch.zeros_like(x).index_add(0, target, x[source]) / degree) + x)
        return x


class GraphAttention(nn.Module):
    """A softmax over each node's edges by scatter_reduce."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.project, self.score, self.heads = nn.Linear(width, width), nn.Linear(2 * width // heads, 1), heads

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        h = self.project(x).view(x.shape[0], self.heads, -1)
        s = nn.functional.leaky_relu(self.score(torch.cat([h[source], h[target]], 2)).squeeze(2), 0.2)
        index = target.unsqueeze(1).expand_as(s)
        most = torch.full((x.shape[0], self.heads), -1e30).scatter_reduce(0, index, s, "amax")
        e = torch.exp(s - most[target])
        total = torch.zeros(x.shape[0], self.heads).scatter_add(0, index, e)
        messages = h[source] * (e / total[target]).unsqueeze(2)
        return torch.zeros_like(h).index_add(0, target, messages).flatten(1)


class Branch(nn.Module):
    """torch.cond: one of two stacks by the sum of the input."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
        self.b = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(torch.cond(x.sum() > 0, lambda v: self.a(v), lambda v: self.b(v), (x,)))


class Scanned(nn.Module):
    """A recurrence by the scan operator."""

    def __init__(self):
        super().__init__()
        self.w = nn.Linear(128, 128)

    def forward(self, h, x):
        from torch._higher_order_ops.scan import scan

        def one(carry, row):
            new = torch.tanh(self.w(carry) + row)
            return new, new.clone()
        return scan(one, h, x, dim=0)


def drawn(name):
    import diffusers
    if name.startswith("unet"):
        model = diffusers.UNet2DConditionModel(
            sample_size=32, block_out_channels=(64, 128, 256), layers_per_block=1, cross_attention_dim=256,
            attention_head_dim=32, norm_num_groups=32,
            down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"))
        return Flat(model.eval(), ["sample", "timestep", "encoder_hidden_states"]), \
            (torch.randn(1, 4, 32, 32), torch.tensor([7]), torch.randn(1, 77, 256)), {}, {}
    if name.startswith("vae"):
        kind = "UpDecoderBlock2D" if name == "vae_dec" else "DownEncoderBlock2D"
        model = diffusers.AutoencoderKL(
            block_out_channels=(32, 64, 128), layers_per_block=1, latent_channels=4, norm_num_groups=32,
            down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3).eval()
        if kind.startswith("Up"):
            return Flat(model, ["latent"], lambda m, z: m.decode(z).sample), (torch.randn(1, 4, 32, 32),), {}, {}
        return Flat(model, ["image"], lambda m, x: m.encode(x).latent_dist.mode()), (torch.randn(1, 3, 128, 128),), {}, {}
    if name == "dit":
        model = diffusers.DiTTransformer2DModel(num_attention_heads=6, attention_head_dim=64, in_channels=4,
                                                num_layers=4, sample_size=32, patch_size=2, num_embeds_ada_norm=1000)
        return Flat(model.eval(), ["hidden_states", "timestep", "class_labels"]), \
            (torch.randn(1, 4, 32, 32), torch.tensor([7]), torch.tensor([3])), {}, {}
    if name == "sd3":
        model = diffusers.SD3Transformer2DModel(sample_size=32, patch_size=2, in_channels=4, num_layers=3,
                                                attention_head_dim=64, num_attention_heads=6, joint_attention_dim=256,
                                                caption_projection_dim=384, pooled_projection_dim=128, out_channels=4,
                                                pos_embed_max_size=32)
        return Flat(model.eval(), ["hidden_states", "encoder_hidden_states", "pooled_projections", "timestep"]), \
            (torch.randn(1, 4, 32, 32), torch.randn(1, 77, 256), torch.randn(1, 128), torch.tensor([7])), {}, {}
    if name == "unet1d":
        model = diffusers.UNet1DModel(sample_size=256, in_channels=14, out_channels=14, block_out_channels=(32, 64, 128),
                                      down_block_types=("DownResnetBlock1D",) * 3, up_block_types=("UpResnetBlock1D",) * 2,
                                      mid_block_type="MidResTemporalBlock1D", out_block_type="OutConv1DBlock",
                                      act_fn="mish", layers_per_block=1, use_timestep_embedding=True,
                                      time_embedding_type="positional")
        return Flat(model.eval(), ["sample", "timestep"]), (torch.randn(1, 14, 256), torch.tensor([7])), {}, {}
    model = diffusers.AutoencoderTiny(encoder_block_out_channels=(32, 32, 32, 32), decoder_block_out_channels=(32,) * 4)
    return Flat(model.eval(), ["latent"], lambda m, z: m.decode(z).sample), (torch.randn(1, 4, 32, 32),), {}, {}


def series(name):
    kind, config, options = SERIES[name]
    model = of(kind, config, options)
    if name == "informer":
        def call(m, values, times, observed, future, times_after):
            return m(past_values=values, past_time_features=times, past_observed_mask=observed, future_values=future,
                     future_time_features=times_after).last_hidden_state
        return Flat(model, ["past_values", "past_time", "observed_mask", "future_values", "future_time"], call), \
            (torch.randn(1, 100), torch.randn(1, 100, 2), torch.ones(1, 100), torch.randn(1, 24),
             torch.randn(1, 24, 2)), {}, {}
    steps = options["context_length"]
    return Flat(model, ["past_values"]), (torch.randn(1, steps, 7),), {}, {}


def plain(module, *args):
    return lambda name: (module().eval(), args, {}, {})


def edges(nodes, count):
    return torch.randint(0, nodes, (2, count))


ALL = {n: decoder for n in DECODERS}
ALL.update({n: crossed for n in CROSSED})
ALL.update({n: mamba for n in ("mamba", "mamba_step")})
ALL.update({n: audio for n in AUDIO})
ALL.update({n: drawn for n in ("unet", "vae_dec", "vae_enc", "dit", "sd3", "unet1d", "taesd")})
ALL.update({n: series for n in SERIES})
ALL.update({
    "vad": plain(Vad, torch.randn(1, 576), torch.zeros(1, 1, 128), torch.zeros(1, 1, 128)),
    "lstm": plain(lambda: Recurrent("LSTM"), torch.randn(4, 50, 128)),
    "lstm_both": plain(lambda: Recurrent("LSTM", both=True), torch.randn(1, 50, 128)),
    "gru": plain(lambda: Recurrent("GRU", first=False), torch.randn(50, 4, 128)),
    "gru_both": plain(lambda: Recurrent("GRU", both=True), torch.randn(1, 50, 128)),
    "rnn": plain(lambda: Recurrent("RNN"), torch.randn(1, 50, 128)),
    "dlrm": plain(Dlrm, torch.randn(128, 13), torch.randint(0, 5000, (128, 26, 4))),
    "dlrm_one": plain(Dlrm, torch.randn(1, 13), torch.randint(0, 5000, (1, 26, 4))),
    "wide_deep": plain(WideDeep, torch.randint(0, 2500, (64, 40))),
    "graph_conv": plain(GraphConv, torch.randn(1000, 64), edges(1000, 8000)),
    "graph_attention": plain(GraphAttention, torch.randn(1000, 64), edges(1000, 8000)),
    "branch": plain(Branch, torch.randn(16, 256)),
    "scanned": plain(Scanned, torch.zeros(4, 128), torch.randn(40, 4, 128)),
})


def write(path, name, make):
    model, args, options, uses = make(name)
    if isinstance(model, Flat):
        options = dict(options, input_names=model.names)
    with torch.no_grad():
        torch.onnx.export(model, args, path, dynamo=True, external_data=False, verbose=False, **options)
    with open(path[:-len("onnx")] + "shapes", "w") as f:
        for use, shapes in uses.items():
            f.write(" ".join([use] + shapes) + "\n")


if __name__ == "__main__":
    run(__doc__, [(ALL, lambda name: ALL[name](name))], write)
