"""Networks of kinds that the other lists have none of: experts, recurrences of today, scientific, sound, series, points.

    python3 bench/peers/exported_further.py FOLDER [NAME...]

Random weights, small configurations. Needs `pip install torch==2.15.0 torchvision==0.29.2 transformers==5.24.0
diffusers==0.42.1 onnx==1.23.2 onnxscript==0.7.2`; what is not installed or cannot be exported is left out with a line
that says so. Dimensions stay open where ALL says so: then NAME.shapes beside the file says the shapes of three uses, a
line each: what it is called, then what `hone --shape` is given."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from exported_kinds import Flat, of, shape_text
from exporting import run

SMALL = dict(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, vocab_size=1000)
GROUPED = dict(SMALL, num_key_value_heads=2, head_dim=64, pad_token_id=0)
EXPERTS = dict(GROUPED, num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=256)
# Of transformers: class, configuration class, what differs from its defaults. Inputs: tokens, all seen.
TEXT = {
    "qwen2_moe": ("Qwen2MoeForCausalLM", "Qwen2MoeConfig", dict(EXPERTS, shared_expert_intermediate_size=256)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", EXPERTS),
    "olmoe": ("OlmoeForCausalLM", "OlmoeConfig", EXPERTS),
    "granite_moe": ("GraniteMoeForCausalLM", "GraniteMoeConfig", EXPERTS),
    "deepseek_v2": ("DeepseekV2ForCausalLM", "DeepseekV2Config",
                    dict(SMALL, q_lora_rank=64, kv_lora_rank=64, qk_rope_head_dim=32, qk_nope_head_dim=32, v_head_dim=32,
                         n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=128, first_k_dense_replace=1,
                         n_group=1, topk_group=1, n_shared_experts=1)),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config",
                    dict(SMALL, q_lora_rank=64, kv_lora_rank=64, qk_rope_head_dim=32, qk_nope_head_dim=32, v_head_dim=32,
                         n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=128, first_k_dense_replace=1,
                         n_group=2, topk_group=1, n_shared_experts=1, num_key_value_heads=4)),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Config", dict(vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_heads=8,
                                                       head_dim=32, state_size=16, n_groups=1, chunk_size=16)),
    "falcon_mamba": ("FalconMambaForCausalLM", "FalconMambaConfig", dict(vocab_size=1000, hidden_size=128,
                                                                       num_hidden_layers=2, state_size=16)),
    "rwkv": ("RwkvModel", "RwkvConfig", dict(vocab_size=1000, hidden_size=128, attention_hidden_size=128,
                                           num_hidden_layers=2, context_length=64)),
    "recurrent_gemma": ("RecurrentGemmaModel", "RecurrentGemmaConfig", dict(GROUPED, num_hidden_layers=3,
                                                                          lru_width=256, attention_window_size=32)),
    "lfm2": ("Lfm2ForCausalLM", "Lfm2Config", dict(GROUPED, num_hidden_layers=4,
                                                   layer_types=["conv", "full_attention", "conv", "full_attention"])),
    "qwen3_next": ("Qwen3NextForCausalLM", "Qwen3NextConfig",
                   dict(EXPERTS, num_hidden_layers=4, linear_num_value_heads=4, linear_num_key_heads=2,
                        linear_key_head_dim=32, linear_value_head_dim=32, shared_expert_intermediate_size=128)),
    "jamba": ("JambaForCausalLM", "JambaConfig", dict(EXPERTS, num_hidden_layers=4, attn_layer_period=2,
                                                    attn_layer_offset=1, use_mamba_kernels=False, mamba_d_state=8)),
    "bamba": ("BambaForCausalLM", "BambaConfig", dict(GROUPED, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=64,
                                                    mamba_d_state=16, mamba_n_groups=1, mamba_chunk_size=16)),
    "xlstm": ("xLSTMModel", "xLSTMConfig", dict(vocab_size=1000, hidden_size=256, num_hidden_layers=2, num_heads=4)),
    "mpt": ("MptForCausalLM", "MptConfig", dict(vocab_size=1000, d_model=256, n_heads=4, n_layers=2)),
    "glm4": ("Glm4ForCausalLM", "Glm4Config", GROUPED),
    "nemotron": ("NemotronForCausalLM", "NemotronConfig", GROUPED),
    "longformer": ("LongformerModel", "LongformerConfig", dict(SMALL, attention_window=16)),
    "big_bird": ("BigBirdModel", "BigBirdConfig", dict(SMALL, attention_type="original_full")),
    "reformer": ("ReformerModel", "ReformerConfig", dict(vocab_size=1000, attn_layers=["local", "local"],
                                                       is_decoder=False, axial_pos_embds=False, hidden_size=256)),
    "canine": ("CanineModel", "CanineConfig", dict(SMALL, num_hidden_layers=2)),
    "megatron_bert": ("MegatronBertModel", "MegatronBertConfig", SMALL),
    "yoso": ("YosoModel", "YosoConfig", dict(SMALL, use_expectation=True)),
    "splinter": ("SplinterModel", "SplinterConfig", SMALL),
    "tapas": ("TapasModel", "TapasConfig", SMALL),
    "image_gpt": ("ImageGPTModel", "ImageGPTConfig", dict(vocab_size=513, n_embd=128, n_layer=2, n_head=4, n_positions=64)),
    "switch_enc": ("SwitchTransformersEncoderModel", "SwitchTransformersConfig",
                dict(vocab_size=1000, d_model=128, d_ff=256, num_layers=2, num_heads=4, d_kv=32, num_experts=4,
                     num_sparse_encoder_layers=1)),
    "m2m100": ("M2M100Model", "M2M100Config", dict(vocab_size=1000, d_model=128, encoder_layers=2, decoder_layers=2,
                                                     encoder_attention_heads=4, decoder_attention_heads=4,
                                                     encoder_ffn_dim=256, decoder_ffn_dim=256)),
    "pegasus": ("PegasusModel", "PegasusConfig", dict(vocab_size=1000, d_model=128, encoder_layers=2, decoder_layers=2,
                                                    encoder_attention_heads=4, decoder_attention_heads=4,
                                                    encoder_ffn_dim=256, decoder_ffn_dim=256)),
    "prophetnet": ("ProphetNetModel", "ProphetNetConfig",
                   dict(vocab_size=1000, hidden_size=128, num_encoder_layers=2, num_decoder_layers=2,
                        num_encoder_attention_heads=4, num_decoder_attention_heads=4, encoder_ffn_dim=256,
                        decoder_ffn_dim=256)),
    "led": ("LEDModel", "LEDConfig", dict(vocab_size=1000, d_model=128, encoder_layers=2, decoder_layers=2,
                                        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=256,
                                        decoder_ffn_dim=256, attention_window=16)),
}
ENCODER_DECODERS = ("m2m100", "pegasus", "prophetnet", "led")


def text(name):
    kind, config, options = TEXT[name]
    model = of(kind, config, options)
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    for m in model.modules():  # experts of which each takes its rows, without sizes that depend on values
        if hasattr(m, "config") and hasattr(m.config, "_experts_implementation"):
            m.config._experts_implementation = "batched_mm"
    ids = torch.randint(5, 500, (1, 32))
    if name in ENCODER_DECODERS:
        return Flat(model, ["input_ids", "decoder_input_ids"],
                    lambda m, a, b: m(input_ids=a, decoder_input_ids=b).last_hidden_state), \
            (ids, torch.randint(5, 500, (1, 12))), {}, {}
    return Flat(model, ["input_ids"], lambda m, a: m(input_ids=a)[0]), (ids,), {}, {}


SPEECH = dict(hidden_size=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
              encoder_ffn_dim=256, decoder_ffn_dim=256)


def sound(name):
    if name == "speech2text":
        model = of("Speech2TextModel", "Speech2TextConfig", dict(SPEECH, d_model=128, vocab_size=500))
        return Flat(model, ["features", "ids"], lambda m, x, i: m(input_features=x, decoder_input_ids=i)[0]), \
            (torch.randn(1, 100, 80), torch.randint(5, 90, (1, 8))), {}, {}
    if name == "speecht5":
        model = of("SpeechT5ForSpeechToText", "SpeechT5Config",
                   dict(SPEECH, vocab_size=90, conv_dim=(64,) * 7, positional_conv_embedding_groups=4))
        return Flat(model, ["wave", "ids"], lambda m, x, i: m(input_values=x, decoder_input_ids=i).logits), \
            (torch.randn(1, 8000), torch.randint(5, 80, (1, 8))), {}, {}
    if name == "mimi":
        model = of("MimiModel", "MimiConfig", dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
                                                 num_key_value_heads=4, head_dim=32, intermediate_size=256,
                                                 num_filters=16, codebook_dim=64, vector_quantization_hidden_dimension=64,
                                                 upsample_groups=128, num_quantizers=4))
        return Flat(model, ["codes"], lambda m, c: m.decode(c)[0]), (torch.randint(0, 90, (1, 4, 20)),), {}, {}
    if name == "dac_enc":
        model = of("DacModel", "DacConfig", dict(encoder_hidden_size=16, decoder_hidden_size=128, n_codebooks=3,
                                               hidden_size=64))
        return Flat(model, ["wave"], lambda m, x: m.encode(x)[1]), (torch.randn(1, 1, 5120),), {}, {}
    if name == "dac_dec":
        model = of("DacModel", "DacConfig", dict(encoder_hidden_size=16, decoder_hidden_size=128, n_codebooks=3,
                                               hidden_size=256))
        return Flat(model, ["latent"], lambda m, z: m.decode(z)[0]), (torch.randn(1, 256, 20),), {}, {}
    if name == "clap":
        model = of("ClapAudioModelWithProjection", "ClapAudioConfig",
                   dict(patch_embeds_hidden_size=32, depths=[1, 1, 1, 1], num_attention_heads=[2, 2, 4, 4],
                        hidden_size=256, enable_fusion=False))
        return Flat(model, ["features"], lambda m, x: m(input_features=x)[0]), (torch.randn(1, 1, 1001, 64),), {}, {}
    if name == "musicgen":
        model = of("MusicgenForCausalLM", "MusicgenDecoderConfig",
                   dict(vocab_size=200, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, ffn_dim=256))
        return Flat(model, ["ids"], lambda m, i: m(input_ids=i, use_cache=False).logits), \
            (torch.randint(0, 190, (4, 16)),), {}, {}
    if name == "unispeech_sat":
        model = of("UniSpeechSatModel", "UniSpeechSatConfig", dict(SMALL))
        return Flat(model, ["wave"], lambda m, x: m(input_values=x)[0]), (torch.randn(1, 8000),), {}, {}
    if name == "sew_d":
        model = of("SEWDModel", "SEWDConfig", dict(SMALL))
        return Flat(model, ["wave"], lambda m, x: m(input_values=x)[0]), (torch.randn(1, 8000),), {}, {}
    if name == "seamless_enc":
        from transformers.models.seamless_m4t.modeling_seamless_m4t import SeamlessM4TSpeechEncoder
        import transformers
        model = SeamlessM4TSpeechEncoder(transformers.SeamlessM4TConfig(
            hidden_size=128, speech_encoder_layers=2, speech_encoder_attention_heads=4,
            speech_encoder_intermediate_size=256)).eval()
        return Flat(model, ["features"], lambda m, x: m(input_features=x)[0]), (torch.randn(1, 80, 160),), {}, {}
    model = of("FastSpeech2ConformerModel", "FastSpeech2ConformerConfig",
               dict(hidden_size=128, encoder_layers=2, decoder_layers=2, encoder_linear_units=256,
                    decoder_linear_units=256, vocab_size=80))
    return Flat(model, ["ids"], lambda m, i: m(input_ids=i).spectrogram), (torch.randint(1, 70, (1, 20)),), {}, {}


def series(name):
    options = dict(prediction_length=24, context_length=48, lags_sequence=[1, 2, 3], num_time_features=2, d_model=64,
                   encoder_layers=2, decoder_layers=2)
    kind = {"autoformer": "Autoformer", "time_series_transformer": "TimeSeriesTransformer"}[name]
    model = of(kind + "Model", kind + "Config", options)
    steps = 48 + 3

    def call(m, values, times, seen, future, times_after):
        return m(past_values=values, past_time_features=times, past_observed_mask=seen, future_values=future,
                 future_time_features=times_after).last_hidden_state
    return Flat(model, ["past_values", "past_time", "observed_mask", "future_values", "future_time"], call), \
        (torch.randn(1, steps), torch.randn(1, steps, 2), torch.ones(1, steps), torch.randn(1, 24),
         torch.randn(1, 24, 2)), {}, {}


def seen(name):
    import transformers as t
    small = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256)
    if name == "zoedepth":
        part = t.BeitConfig(**dict(small, num_hidden_layers=4), image_size=128, out_features=["stage1", "stage2", "stage3", "stage4"],
                            reshape_hidden_states=False, use_relative_position_bias=True)
        model = t.ZoeDepthForDepthEstimation(t.ZoeDepthConfig(backbone_config=part, neck_hidden_sizes=[16, 32, 64, 64],
                                                             fusion_hidden_size=32, bottleneck_features=32)).eval()
        return Flat(model, ["pixel_values"], lambda m, x: m(x).predicted_depth), (torch.randn(1, 3, 128, 128),), {}, {}
    if name == "vivit":
        model = t.VivitModel(t.VivitConfig(**small, num_frames=4, image_size=64, tubelet_size=[2, 16, 16])).eval()
        return Flat(model, ["pixel_values"]), (torch.randn(1, 4, 3, 64, 64),), {}, {}
    if name == "perceiver":
        model = t.PerceiverModel(t.PerceiverConfig(num_latents=32, d_latents=64, d_model=48, num_self_attends_per_block=2,
                                                   num_cross_attention_heads=2, num_self_attention_heads=2)).eval()
        return Flat(model, ["inputs"], lambda m, x: m(inputs=x)[0]), (torch.randn(1, 200, 48),), {}, {}
    if name == "blip2_qformer":
        model = t.Blip2QFormerModel(t.Blip2QFormerConfig(**small, encoder_hidden_size=64)).eval()
        return Flat(model, ["query", "image"], lambda m, q, e: m(query_embeds=q, encoder_hidden_states=e)[0]), \
            (torch.randn(1, 16, 128), torch.randn(1, 50, 64)), {}, {}
    if name == "pix2struct":
        model = t.Pix2StructVisionModel(t.Pix2StructVisionConfig(
            hidden_size=128, num_hidden_layers=2, num_attention_heads=4, d_ff=256, d_kv=32, patch_embed_hidden_size=768)).eval()
        return Flat(model, ["patches", "mask"], lambda m, x, k: m(flattened_patches=x, attention_mask=k)[0]), \
            (torch.cat([torch.randint(0, 9, (1, 40, 2)).float(), torch.randn(1, 40, 768)], 2), torch.ones(1, 40)), {}, {}
    if name == "trocr":
        model = t.TrOCRForCausalLM(t.TrOCRConfig(vocab_size=500, d_model=128, decoder_layers=2, decoder_attention_heads=4,
                                                 decoder_ffn_dim=256, cross_attention_hidden_size=64,
                                                 use_cache=False)).eval()
        return Flat(model, ["ids", "image"], lambda m, i, e: m(input_ids=i, encoder_hidden_states=e).logits), \
            (torch.randint(3, 400, (1, 12)), torch.randn(1, 50, 64)), {}, {}
    if name == "pixtral":
        model = t.PixtralVisionModel(t.PixtralVisionConfig(**small, image_size=128, patch_size=16)).eval()
        return Flat(model, ["pixel_values"], lambda m, x: m(x)[0]), (torch.randn(1, 3, 96, 128),), {}, {}
    if name == "upernet":
        part = t.ConvNextConfig(hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1],
                                out_features=["stage1", "stage2", "stage3", "stage4"])
        model = t.UperNetForSemanticSegmentation(t.UperNetConfig(backbone_config=part, hidden_size=64,
                                                                auxiliary_in_channels=64)).eval()
        return Flat(model, ["pixel_values"], lambda m, x: m(x).logits), (torch.randn(1, 3, 128, 128),), {}, {}
    if name == "vitmatte":
        part = t.VitDetConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=128,
                              pretrain_image_size=128, num_channels=4, out_features=["stage2"])
        model = t.VitMatteForImageMatting(t.VitMatteConfig(backbone_config=part, hidden_size=64,
                                                          fusion_hidden_sizes=[64, 32, 16, 8])).eval()
        return Flat(model, ["pixel_values"], lambda m, x: m(x).alphas), (torch.randn(1, 4, 128, 128),), {}, {}
    raise KeyError(name)


def drawn(name):
    import diffusers
    if name == "controlnet":
        model = diffusers.ControlNetModel(block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=64,
                                          attention_head_dim=8, norm_num_groups=16,
                                          down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                          conditioning_embedding_out_channels=(16, 32))
        return Flat(model.eval(), ["sample", "timestep", "text", "image"], lambda m, x, s, e, c: sum(
            (list(o) if isinstance(o, (list, tuple)) else [o] for o in m(x, s, e, c, return_dict=False)), [])), \
            (torch.randn(1, 4, 32, 32), torch.tensor([7]), torch.randn(1, 12, 64), torch.randn(1, 3, 64, 64)), {}, {}
    if name == "unet3d":
        model = diffusers.UNet3DConditionModel(block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=64,
                                               attention_head_dim=8, norm_num_groups=16,
                                               down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
                                               up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"))
        return Flat(model.eval(), ["sample", "timestep", "text"]), \
            (torch.randn(1, 4, 4, 16, 16), torch.tensor([7]), torch.randn(1, 12, 64)), {}, {}
    if name == "vq":
        model = diffusers.VQModel(block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=16, num_vq_embeddings=64,
                                  down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
        return Flat(model.eval(), ["image"], lambda m, x: m(x).sample), (torch.randn(1, 3, 64, 64),), {}, {}
    if name == "flux":
        model = diffusers.FluxTransformer2DModel(in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=32,
                                                 num_attention_heads=4, joint_attention_dim=64, pooled_projection_dim=32,
                                                 axes_dims_rope=(8, 12, 12), guidance_embeds=False)
        return Flat(model.eval(), ["hidden", "text", "pooled", "timestep", "image_ids", "text_ids"],
                    lambda m, h, e, p, s, i, j: m(h, e, p, s, i, j).sample), \
            (torch.randn(1, 64, 16), torch.randn(1, 12, 64), torch.randn(1, 32), torch.tensor([0.7]), torch.rand(64, 3),
             torch.zeros(12, 3)), {}, {}
    if name == "sana":
        model = diffusers.SanaTransformer2DModel(in_channels=8, out_channels=8, num_attention_heads=4,
                                                 attention_head_dim=16, num_layers=2, num_cross_attention_heads=4,
                                                 cross_attention_head_dim=16, cross_attention_dim=64, caption_channels=32,
                                                 sample_size=16)
        return Flat(model.eval(), ["latent", "text", "timestep"], lambda m, x, e, s: m(
            x, encoder_hidden_states=e, timestep=s).sample), \
            (torch.randn(1, 8, 16, 16), torch.randn(1, 12, 32), torch.tensor([7])), {}, {}
    if name == "pixart":
        model = diffusers.PixArtTransformer2DModel(num_attention_heads=4, attention_head_dim=16, in_channels=4,
                                                   out_channels=8, num_layers=2, cross_attention_dim=64, sample_size=16,
                                                   caption_channels=32, use_additional_conditions=False)
        return Flat(model.eval(), ["latent", "text", "timestep"], lambda m, x, e, s: m(
            x, encoder_hidden_states=e, timestep=s, added_cond_kwargs=dict(resolution=None, aspect_ratio=None)).sample), \
            (torch.randn(1, 4, 16, 16), torch.randn(1, 12, 32), torch.tensor([7])), {}, {}
    if name == "wan":
        model = diffusers.WanTransformer3DModel(patch_size=(1, 2, 2), num_attention_heads=4, attention_head_dim=24,
                                                in_channels=4, out_channels=4, text_dim=32, freq_dim=32, ffn_dim=128,
                                                num_layers=2, rope_max_seq_len=32)
        return Flat(model.eval(), ["latent", "timestep", "text"], lambda m, x, s, e: m(x, s, e).sample), \
            (torch.randn(1, 4, 3, 16, 16), torch.tensor([7]), torch.randn(1, 12, 32)), {}, {}
    if name == "dc_ae":
        model = diffusers.AutoencoderDC(latent_channels=8, attention_head_dim=8,
                                        encoder_block_types=("ResBlock", "EfficientViTBlock"),
                                        decoder_block_types=("ResBlock", "EfficientViTBlock"),
                                        encoder_block_out_channels=(32, 64), decoder_block_out_channels=(32, 64),
                                        encoder_layers_per_block=(1, 1), decoder_layers_per_block=(1, 1),
                                        encoder_qkv_multiscales=((), (5,)), decoder_qkv_multiscales=((), (5,)))
        return Flat(model.eval(), ["image"], lambda m, x: m(x).sample), (torch.randn(1, 3, 64, 64),), {}, {}
    if name == "prior":
        model = diffusers.PriorTransformer(num_attention_heads=4, attention_head_dim=16, num_layers=2, embedding_dim=32,
                                           num_embeddings=12, additional_embeddings=4)
        return Flat(model.eval(), ["hidden", "timestep", "pooled", "text"], lambda m, x, s, p, e: m(
            x, s, proj_embedding=p, encoder_hidden_states=e).predicted_image_embedding), \
            (torch.randn(1, 32), torch.tensor([7]), torch.randn(1, 32), torch.randn(1, 12, 32)), {}, {}
    raise KeyError(name)


# ---- Models of a few lines, each for what its kind does to a graph.

class PointNet2(nn.Module):
    """Points: the farthest in turn, groups of the nearest, a maximum over each group."""

    def __init__(self, centres=32, near=16):
        super().__init__()
        self.centres, self.near = centres, near
        self.a = nn.Sequential(nn.Conv2d(6, 32, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 1), nn.ReLU())
        self.head = nn.Linear(64, 10)

    def forward(self, points):
        d = torch.full(points.shape[:2], 1e10)
        pick = torch.zeros(points.shape[0], 1, dtype=torch.long)
        picks = []
        for _ in range(self.centres):
            picks.append(pick)
            c = torch.gather(points, 1, pick.unsqueeze(2).expand(-1, -1, 3))
            d = torch.minimum(d, ((points - c) ** 2).sum(2))
            pick = d.argmax(1, keepdim=True)
        pick = torch.cat(picks, 1)
        centre = torch.gather(points, 1, pick.unsqueeze(2).expand(-1, -1, 3))
        near = torch.cdist(centre, points).topk(self.near, 2, largest=False)[1]
        flat = near.flatten(1).unsqueeze(2).expand(-1, -1, 3)
        group = torch.gather(points, 1, flat).unflatten(1, (self.centres, self.near))
        x = torch.cat([group - centre.unsqueeze(2), group], 3).permute(0, 3, 1, 2)
        return self.head(self.a(x).amax(3).amax(2))


class EdgeConv(nn.Module):
    """DGCNN: the graph of the nearest in the space of features, anew in every layer."""

    def __init__(self, near=12):
        super().__init__()
        self.near = near
        self.layers = nn.ModuleList([nn.Conv2d(6, 32, 1), nn.Conv2d(64, 32, 1), nn.Conv2d(64, 64, 1)])
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        kept = []
        for layer in self.layers:
            inner = -2 * torch.matmul(x.transpose(2, 1), x)
            xx = (x ** 2).sum(1, keepdim=True)
            near = (-xx - inner - xx.transpose(2, 1)).topk(self.near, -1)[1]
            b, n, k = near.shape
            rows = (near + torch.arange(b).view(-1, 1, 1) * n).view(-1)
            y = x.transpose(2, 1).reshape(b * n, -1)[rows].view(b, n, k, -1)
            c = x.transpose(2, 1).unsqueeze(2).expand(-1, -1, k, -1)
            x = F.leaky_relu(layer(torch.cat([y - c, c], 3).permute(0, 3, 1, 2)), 0.2).amax(3)
            kept.append(x)
        return self.head(torch.cat(kept, 1).amax(2))


class Nerf(nn.Module):
    """Rays: positions as sines, layers, then light added up along each ray."""

    def __init__(self, width=128):
        super().__init__()
        self.register_buffer("scale", 2.0 ** torch.arange(8))
        self.layers = nn.Sequential(nn.Linear(3 + 48, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                    nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, origin, direction, depth):
        p = origin[:, None] + direction[:, None] * depth[..., None]
        a = (p[..., None] * self.scale).flatten(-2)
        y = self.layers(torch.cat([p, a.sin(), a.cos()], -1))
        step = torch.cat([depth[:, 1:] - depth[:, :-1], torch.full_like(depth[:, :1], 1e10)], 1)
        alpha = 1 - torch.exp(-F.relu(y[..., 3]) * step)
        t = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
        w = alpha * t
        return (w[..., None] * y[..., :3].sigmoid()).sum(1), (w * depth).sum(1)


class HashGrid(nn.Module):
    """Instant neural graphics: hashes of corners by products of integers and exclusive ors, then eight looked up."""

    def __init__(self, levels=4, size=4096):
        super().__init__()
        self.levels, self.size = levels, size
        self.table = nn.Parameter(torch.randn(levels, size, 2))
        self.register_buffer("corner", torch.tensor([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)]))
        self.head = nn.Sequential(nn.Linear(2 * levels, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        kept = []
        for i in range(self.levels):
            p = x * (16 * 2 ** i)
            low = p.floor()
            f = p - low
            c = low.long().unsqueeze(1) + self.corner
            h = (c[..., 0] ^ (c[..., 1] * 2654435761) ^ (c[..., 2] * 805459861)) % self.size
            w = torch.where(self.corner.bool(), f.unsqueeze(1), 1 - f.unsqueeze(1)).prod(-1)
            kept.append((self.table[i][h] * w.unsqueeze(-1)).sum(1))
        return self.head(torch.cat(kept, 1))


class Fourier(nn.Module):
    """A Fourier neural operator: products of the lowest frequencies of a map."""

    def __init__(self, width=16, modes=8):
        super().__init__()
        self.modes, self.width = modes, width
        self.lift, self.head = nn.Conv2d(1, width, 1), nn.Conv2d(width, 1, 1)
        self.w = nn.Parameter(torch.randn(3, width, width, 2 * modes, modes, 2) / width)
        self.skip = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(3)])

    def forward(self, x):
        x = self.lift(x)
        for i in range(3):
            f = torch.view_as_real(torch.fft.rfft2(x, norm="ortho"))
            m = self.modes
            f = torch.cat([f[:, :, :m, :m], f[:, :, -m:, :m]], 2)
            w = self.w[i]
            re = torch.einsum("bixy,ioxy->boxy", f[..., 0], w[..., 0]) - torch.einsum("bixy,ioxy->boxy", f[..., 1], w[..., 1])
            im = torch.einsum("bixy,ioxy->boxy", f[..., 0], w[..., 1]) + torch.einsum("bixy,ioxy->boxy", f[..., 1], w[..., 0])
            z = torch.stack([re, im], -1)
            z = F.pad(z, (0, 0, 0, x.shape[3] // 2 + 1 - m, 0, x.shape[2] - 2 * m))
            y = torch.fft.irfft2(torch.view_as_complex(z.contiguous()), s=x.shape[2:], norm="ortho")
            x = F.gelu(y + self.skip[i](x))
        return self.head(x)


class TimesNet(nn.Module):
    """Series folded by their strongest periods. (Periods fixed: sizes by value cannot be exported.)"""

    def __init__(self, steps=96, width=32):
        super().__init__()
        self.embed, self.head = nn.Conv1d(7, width, 3, padding=1, padding_mode="circular"), nn.Linear(width, 7)
        self.convs = nn.ModuleList([nn.Conv2d(width, width, (k, k), padding=k // 2) for k in (1, 3, 5)])

    def forward(self, x):
        m, s = x.mean(1, keepdim=True), x.std(1, keepdim=True, unbiased=False) + 1e-5
        h = self.embed(((x - m) / s).transpose(1, 2))
        power = torch.view_as_real(torch.fft.rfft(h)).pow(2).sum(-1).mean(1)
        kept, weights = [], []
        for period in (24, 12, 8):
            y = h.unflatten(2, (h.shape[2] // period, period))
            y = sum(c(y) for c in self.convs) / 3
            kept.append(F.gelu(y).flatten(2))
            weights.append(power[:, h.shape[2] // period])
        w = torch.softmax(torch.stack(weights, 1), 1)
        h = h + (torch.stack(kept, 1) * w[:, :, None, None]).sum(1)
        return self.head(h.transpose(1, 2)) * s + m


class Nbeats(nn.Module):
    def __init__(self, steps=60, ahead=20):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(steps, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
                                                   nn.Linear(128, 8)) for _ in range(4)])
        t = torch.linspace(0, 1, steps + ahead)
        self.register_buffer("basis", torch.stack([t ** i for i in range(4)] + [torch.sin(6.28 * t * i) for i in (1, 2, 3, 4)]))
        self.steps = steps

    def forward(self, x):
        total = 0
        for b in self.blocks:
            y = b(x) @ self.basis
            x, total = x - y[:, :self.steps], total + y[:, self.steps:]
        return total


class ConvTasNet(nn.Module):
    """Speech apart: a learned transform, dilated depthwise convolutions with global norms, masks, its inverse."""

    def __init__(self, n=64):
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, n, 16, 8, bias=False), nn.ConvTranspose1d(n, 1, 16, 8, bias=False)
        self.blocks = nn.ModuleList([nn.Sequential(
            nn.Conv1d(n, 2 * n, 1), nn.PReLU(), nn.GroupNorm(1, 2 * n),
            nn.Conv1d(2 * n, 2 * n, 3, padding=2 ** i, dilation=2 ** i, groups=2 * n), nn.PReLU(),
            nn.GroupNorm(1, 2 * n), nn.Conv1d(2 * n, n, 1)) for i in range(6)])
        self.mask = nn.Conv1d(n, 2 * n, 1)

    def forward(self, wave):
        e = F.relu(self.encode(wave))
        x = e
        for b in self.blocks:
            x = x + b(x)
        m = self.mask(x).sigmoid().unflatten(1, (2, -1))
        y = (m * e.unsqueeze(1)).flatten(0, 1)
        return self.decode(y).unflatten(0, (-1, 2)).squeeze(2)


class WaveNet(nn.Module):
    def __init__(self, n=32):
        super().__init__()
        self.first = nn.Conv1d(1, n, 1)
        self.gates = nn.ModuleList([nn.Conv1d(n, 2 * n, 2, dilation=2 ** i) for i in range(8)])
        self.outs = nn.ModuleList([nn.Conv1d(n, 2 * n, 1) for i in range(8)])
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(n, 64, 1), nn.ReLU(), nn.Conv1d(64, 256, 1))

    def forward(self, wave):
        x, total = self.first(wave), 0
        for i in range(8):
            a, b = self.gates[i](F.pad(x, (2 ** i, 0))).chunk(2, 1)
            r, s = self.outs[i](a.tanh() * b.sigmoid()).chunk(2, 1)
            x, total = x + r, total + s
        return self.head(total)


class Spectrum(nn.Module):
    """torch.stft, a mask, and torch.istft's work by a fold."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(129, 64, batch_first=True)
        self.mask = nn.Linear(64, 129)
        self.register_buffer("window", torch.hann_window(256))

    def forward(self, wave):
        s = torch.view_as_real(torch.stft(wave, 256, 128, window=self.window, center=True, return_complex=True))
        p = torch.log1p((s ** 2).sum(-1)).transpose(1, 2)
        return s * self.mask(self.cell(p)[0]).sigmoid().transpose(1, 2).unsqueeze(-1)


class Deformed(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = nn.Conv2d(16, 27, 3, padding=1)
        self.w = nn.Parameter(torch.randn(32, 16, 3, 3) / 12)
        self.first = nn.Conv2d(3, 16, 3, 2, 1)

    def forward(self, x):
        from torchvision.ops import deform_conv2d
        x = F.relu(self.first(x))
        o = self.offset(x)
        return deform_conv2d(x, o[:, :18], self.w, padding=1, mask=o[:, 18:].sigmoid())


class Transformed(nn.Module):
    """A spatial transformer: a small network says where a picture is sampled."""

    def __init__(self):
        super().__init__()
        self.where = nn.Sequential(nn.Conv2d(1, 8, 7), nn.MaxPool2d(2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 11 * 11, 6))
        self.head = nn.Sequential(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 24 * 24, 10))

    def forward(self, x):
        t = self.where(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        return self.head(F.grid_sample(x, F.affine_grid(t, x.size(), align_corners=False), align_corners=False))


class Kan(nn.Module):
    """B-splines of each input, by the recursion."""

    def __init__(self, widths=(8, 32, 4), order=3, cells=5):
        super().__init__()
        self.order = order
        h = 2 / cells
        self.register_buffer("grid", torch.arange(-order, cells + order + 1) * h - 1)
        self.splines = nn.ParameterList([torch.randn(o, i, cells + order) * 0.1 for i, o in zip(widths, widths[1:])])
        self.bases = nn.ModuleList([nn.Linear(i, o) for i, o in zip(widths, widths[1:])])

    def forward(self, x):
        for w, base in zip(self.splines, self.bases):
            v, g = x.unsqueeze(-1), self.grid
            b = ((v >= g[:-1]) & (v < g[1:])).to(x.dtype)
            for k in range(1, self.order + 1):
                b = (v - g[:-k - 1]) / (g[k:-1] - g[:-k - 1]) * b[..., :-1] + (g[k + 1:] - v) / (g[k + 1:] - g[1:-k]) * b[..., 1:]
            x = base(F.silu(x)) + torch.einsum("bik,oik->bo", b, w)
        return x


class Flow(nn.Module):
    """A normalising flow: halves that shift and scale each other, a permutation, the logarithm of the determinant."""

    def __init__(self, width=16):
        super().__init__()
        self.nets = nn.ModuleList([nn.Sequential(nn.Linear(width // 2, 64), nn.ReLU(), nn.Linear(64, width)) for _ in range(4)])
        self.w = nn.ParameterList([torch.linalg.qr(torch.randn(width, width))[0] for _ in range(4)])

    def forward(self, x):
        total = torch.zeros(x.shape[0])
        for net, w in zip(self.nets, self.w):
            a, b = (x @ w).chunk(2, 1)
            s, t = net(a).chunk(2, 1)
            s = torch.tanh(s)
            x = torch.cat([b * s.exp() + t, a], 1)
            total = total + s.sum(1)
        return x, -0.5 * (x ** 2 + math.log(2 * math.pi)).sum(1) + total


class Messages(nn.Module):
    """Messages with features of edges, a GRU cell at each node, a sum over each graph of a batch."""

    def __init__(self, n=32):
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(2 * n + 8, 64), nn.ReLU(), nn.Linear(64, n))
        self.cell, self.head = nn.GRUCell(n, n), nn.Linear(2 * n, 1)
        self.register_buffer("graph", torch.arange(100) // 13)

    def forward(self, x, edges, features):
        graph = self.graph
        for _ in range(3):
            m = self.edge(torch.cat([x[edges[0]], x[edges[1]], features], 1))
            x = self.cell(torch.zeros_like(x).index_add(0, edges[1], m), x)
        total = torch.zeros(8, x.shape[1]).index_add(0, graph, x)
        most = torch.full((8, x.shape[1]), -1e30).scatter_reduce(0, graph[:, None].expand_as(x), x, "amax")
        return self.head(torch.cat([total, most], 1))


class Triangle(nn.Module):
    """AlphaFold's update of pairs: products along triangles, gated, and attention with a bias of pairs."""

    def __init__(self, n=32):
        super().__init__()
        self.norm, self.ab, self.gate, self.out = nn.LayerNorm(n), nn.Linear(n, 4 * n), nn.Linear(n, n), nn.Linear(n, n)
        self.qkv, self.bias, self.last = nn.Linear(n, 3 * n), nn.Linear(n, 4, bias=False), nn.Linear(n, n)

    def forward(self, z):
        y = self.norm(z)
        a, b, ga, gb = self.ab(y).chunk(4, -1)
        a, b = a * ga.sigmoid(), b * gb.sigmoid()
        z = z + self.gate(y).sigmoid() * self.out(torch.einsum("bikc,bjkc->bijc", a, b))
        y = self.norm(z)
        q, k, v = self.qkv(y).unflatten(-1, (3, 4, -1)).permute(3, 0, 1, 4, 2, 5)
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + self.bias(y).permute(0, 3, 1, 2).unsqueeze(1)
        return z + self.last((s.softmax(-1) @ v).transpose(2, 3).flatten(3))


class LinearAttention(nn.Module):
    """Elu + 1 in place of Softmax, causal by running sums."""

    def __init__(self, n=64, heads=4):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(n, 3 * n), nn.Linear(n, n), heads

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        s = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), 2)
        y = torch.einsum("bhnd,bhnde->bhne", q, s) / torch.einsum("bhnd,bhnd->bhn", q, k.cumsum(2)).unsqueeze(-1)
        return self.out(y.transpose(1, 2).flatten(2))


class Capsules(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 32, 9), nn.Conv2d(32, 64, 9, 2)
        self.w = nn.Parameter(torch.randn(10, 288, 16, 8) * 0.05)

    def forward(self, x):
        u = self.second(F.relu(self.first(x))).view(x.shape[0], 8, -1).transpose(1, 2)
        u = u / (1 + (u ** 2).sum(-1, keepdim=True)).sqrt()
        h = (self.w @ u[:, None, :, :, None]).squeeze(-1)
        b = torch.zeros(x.shape[0], 10, 288)
        for _ in range(3):
            s = (b.softmax(1).unsqueeze(-1) * h).sum(2)
            n = (s ** 2).sum(-1, keepdim=True)
            v = n / (1 + n) * s / (n + 1e-8).sqrt()
            b = b + (h * v.unsqueeze(2)).sum(-1)
        return v.norm(dim=-1)


class Volumes(nn.Module):
    """A UNet of volumes: instance norms, leaky units, transposed convolutions, skips."""

    def __init__(self, n=8):
        super().__init__()
        def block(a, b, s=1):
            return nn.Sequential(nn.Conv3d(a, b, 3, s, 1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01),
                                 nn.Conv3d(b, b, 3, 1, 1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01))
        self.a, self.b, self.c = block(1, n), block(n, 2 * n, 2), block(2 * n, 4 * n, 2)
        self.up1, self.up2 = nn.ConvTranspose3d(4 * n, 2 * n, 2, 2), nn.ConvTranspose3d(2 * n, n, 2, 2)
        self.d, self.e, self.head = block(4 * n, 2 * n), block(2 * n, n), nn.Conv3d(n, 3, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        y = self.d(torch.cat([self.up1(self.c(b)), b], 1))
        return self.head(self.e(torch.cat([self.up2(y), a], 1)))


class SuperResolution(nn.Module):
    """Dense blocks with scaled residues, nearest doubling, as ESRGAN."""

    def __init__(self, n=16, g=8):
        super().__init__()
        self.first = nn.Conv2d(3, n, 3, 1, 1)
        self.convs = nn.ModuleList([nn.ModuleList([nn.Conv2d(n + i * g, g if i < 4 else n, 3, 1, 1) for i in range(5)])
                                    for _ in range(3)])
        self.up, self.last = nn.Conv2d(n, n, 3, 1, 1), nn.Conv2d(n, 3, 3, 1, 1)

    def forward(self, x):
        x = self.first(x)
        for convs in self.convs:
            kept = [x]
            for i, c in enumerate(convs):
                y = c(torch.cat(kept, 1))
                kept.append(F.leaky_relu(y, 0.2))
            x = x + 0.2 * y
        return self.last(F.leaky_relu(self.up(F.interpolate(x, scale_factor=2.0, mode="nearest")), 0.2))


class Styles(nn.Module):
    """StyleGAN: weights that are scaled by a style and normalised, a convolution with weights of each picture, noise, a blur."""

    def __init__(self, n=16):
        super().__init__()
        self.map = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(32, 32), nn.LeakyReLU(0.2))])
        self.start = nn.Parameter(torch.randn(1, n, 8, 8))
        self.styles = nn.ModuleList([nn.Linear(32, n) for _ in range(3)])
        self.w = nn.ParameterList([torch.randn(n, n, 3, 3) * 0.1 for _ in range(3)])
        k = torch.tensor([1.0, 3, 3, 1])
        self.register_buffer("blur", (k[:, None] * k[None] / 64)[None, None].repeat(n, 1, 1, 1))
        self.head = nn.Conv2d(n, 3, 1)

    def forward(self, z):
        w = self.map(z * (z ** 2).mean(1, keepdim=True).add(1e-8).rsqrt())
        x = self.start.repeat(z.shape[0], 1, 1, 1)
        for style, weight in zip(self.styles, self.w):
            k = weight[None] * (style(w) + 1)[:, None, :, None, None]
            k = k * (k ** 2).sum((2, 3, 4), keepdim=True).add(1e-8).rsqrt()
            b, o, i, h, v = k.shape
            x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
            x = F.conv2d(x.reshape(1, b * i, x.shape[2], x.shape[3]), k.reshape(b * o, i, h, v), padding=1, groups=b).view(
                b, o, x.shape[2], x.shape[3])
            x = F.leaky_relu(F.conv2d(F.pad(x, (2, 1, 2, 1)), self.blur, groups=o), 0.2)
        return self.head(x).tanh()


class Crf(nn.Module):
    """The best path through a sentence's labels, forwards and backwards, steps written out."""

    def __init__(self, labels=9, width=32):
        super().__init__()
        self.cell = nn.LSTM(width, 32, batch_first=True, bidirectional=True)
        self.head, self.move = nn.Linear(64, labels), nn.Parameter(torch.randn(labels, labels))

    def forward(self, x):
        e = self.head(self.cell(x)[0])
        s, back = e[:, 0], []
        for t in range(1, e.shape[1]):
            s, i = (s.unsqueeze(2) + self.move).max(1)
            s = s + e[:, t]
            back.append(i)
        best = s.argmax(1, keepdim=True)
        path = [best]
        for i in reversed(back):
            path.append(torch.gather(i, 1, path[-1]))
        return torch.cat(path[::-1], 1), s.amax(1)


class Decay(nn.Module):
    """Retention: scores by a decay of distance, a norm of groups, a gate."""

    def __init__(self, n=64, heads=4):
        super().__init__()
        self.q, self.k, self.v, self.g, self.o = [nn.Linear(n, n, bias=False) for _ in range(5)]
        self.norm, self.heads = nn.GroupNorm(heads, n), heads
        self.register_buffer("gamma", 1 - 2.0 ** (-5 - torch.arange(heads)))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = [f(x).view(b, n, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v)]
        i = torch.arange(n)
        m = torch.where(i[:, None] >= i, self.gamma[:, None, None] ** (i[:, None] - i).clamp(min=0).float(), 0.0)
        y = ((q @ k.transpose(2, 3)) * m @ v).transpose(1, 2).reshape(b * n, d)
        return self.o(F.silu(self.g(x)) * self.norm(y).view(b, n, d))


class Delta(nn.Module):
    """A delta rule: a state of keys and values, a step a token, steps written out."""

    def __init__(self, n=32):
        super().__init__()
        self.q, self.k, self.v, self.b = nn.Linear(n, n), nn.Linear(n, n), nn.Linear(n, n), nn.Linear(n, 1)

    def forward(self, x):
        q, k, v = self.q(x), F.normalize(self.k(x), dim=-1), self.v(x)
        b, s, kept = self.b(x).sigmoid(), torch.zeros(x.shape[0], x.shape[2], x.shape[2]), []
        for t in range(x.shape[1]):
            old = torch.einsum("bij,bj->bi", s, k[:, t])
            s = s + torch.einsum("bi,bj->bij", b[:, t] * (v[:, t] - old), k[:, t])
            kept.append(torch.einsum("bij,bj->bi", s, q[:, t]))
        return torch.stack(kept, 1)


class Sorted(nn.Module):
    """Sorts, medians, quantiles by index, buckets, one-hot, a histogram: what preparation in a graph does."""

    def forward(self, x):
        s, i = x.sort(1)
        r = torch.zeros_like(i).scatter(1, i, torch.arange(x.shape[1]).expand_as(i))
        b = torch.bucketize(x, torch.linspace(-2, 2, 9))
        h = F.one_hot(b, 10).sum(1)
        return s[:, x.shape[1] // 2], r, h, x.cumsum(1), torch.where(x > 0, x, x.new_zeros(())).nan_to_num(), \
            x.roll(3, 1), x.flip(1), x.unfold(1, 8, 4).amax(2), (x.abs() + 1).log2().fmod(0.3), torch.atan2(x, s)


def plain(module, *args, open=None):
    """open: for each input the axes whose size stays open."""
    def make(name):
        if not open:
            return module().eval(), args, {}, {}
        names, uses = ["in%d" % i for i in range(len(args))], {}
        for use, size in (("same", lambda n: n), ("more", lambda n: n + 3 * (n // 5 + 1)), ("half", lambda n: max(1, n // 2))):
            uses[use] = [shape_text(n, [size(d) if i in axes else d for i, d in enumerate(x.shape)])
                         for n, x, axes in zip(names, args, open)]
        sizes = tuple({d: torch.export.Dim.DYNAMIC for d in axes} for axes in open)
        return module().eval(), args, dict(dynamic_shapes=sizes, input_names=names), uses
    return make


ALL = {n: text for n in TEXT}
ALL.update({n: sound for n in ("speech2text", "speecht5", "mimi", "dac_enc", "dac_dec", "clap", "musicgen", "unispeech_sat",
                               "sew_d", "seamless_enc", "fastspeech2")})
ALL.update({n: series for n in ("autoformer", "time_series_transformer")})
ALL.update({n: seen for n in ("zoedepth", "vivit", "perceiver", "blip2_qformer", "pix2struct", "trocr", "pixtral",
                              "upernet", "vitmatte")})
ALL.update({n: drawn for n in ("controlnet", "unet3d", "vq", "flux", "sana", "pixart", "wan", "dc_ae", "prior")})
ALL.update({
    "pointnet2": plain(PointNet2, torch.randn(2, 512, 3)),
    "edge_conv": plain(EdgeConv, torch.randn(2, 3, 256)),
    "nerf": plain(Nerf, torch.randn(256, 3), torch.randn(256, 3), torch.rand(256, 32).sort(1)[0]),
    "hash_grid": plain(HashGrid, torch.rand(2048, 3)),
    "fourier": plain(Fourier, torch.randn(1, 1, 64, 64)),
    "timesnet": plain(TimesNet, torch.randn(2, 96, 7)),
    "nbeats": plain(Nbeats, torch.randn(4, 60), open=[[0]]),
    "conv_tasnet": plain(ConvTasNet, torch.randn(1, 1, 8000), open=[[0]]),
    "wavenet": plain(WaveNet, torch.randn(1, 1, 4000), open=[[0, 2]]),
    "spectrum": plain(Spectrum, torch.randn(1, 8000)),
    "deformed": plain(Deformed, torch.randn(1, 3, 64, 64)),
    "transformed": plain(Transformed, torch.randn(4, 1, 28, 28)),
    "kan": plain(Kan, torch.rand(64, 8) * 1.8 - 0.9, open=[[0]]),
    "flow": plain(Flow, torch.randn(64, 16), open=[[0]]),
    "messages": plain(Messages, torch.randn(100, 32), torch.randint(0, 100, (2, 400)), torch.randn(400, 8)),
    "triangle": plain(Triangle, torch.randn(1, 24, 24, 32), open=[[1, 2]]),
    "linear_attention": plain(LinearAttention, torch.randn(2, 64, 64), open=[[0, 1]]),
    "capsules": plain(Capsules, torch.randn(2, 1, 28, 28)),
    "volumes": plain(Volumes, torch.randn(1, 1, 32, 32, 32)),
    "super_resolution": plain(SuperResolution, torch.randn(1, 3, 48, 64), open=[[0, 2, 3]]),
    "styles": plain(Styles, torch.randn(2, 32)),
    "crf": plain(Crf, torch.randn(2, 20, 32)),
    "retention": plain(Decay, torch.randn(2, 48, 64), open=[[0, 1]]),
    "delta_rule": plain(Delta, torch.randn(2, 24, 32)),
    "preparation": plain(Sorted, torch.randn(4, 100)),
})


def write(path, name, make):
    model, args, options, uses = make(name)
    if isinstance(model, Flat):
        options = dict(options, input_names=model.names)
    for weight in model.parameters():  # those that begin at zero would hide what is before them
        if weight.dim() > 1 and not weight.any():
            nn.init.normal_(weight, std=0.05)
    with torch.no_grad():
        torch.onnx.export(model, args, path, dynamo=True, external_data=False, verbose=False, **options)
    if uses:
        with open(path[:-len("onnx")] + "shapes", "w") as f:
            for use, shapes in uses.items():
                f.write(" ".join([use] + shapes) + "\n")


if __name__ == "__main__":
    run(__doc__, [(ALL, lambda name: ALL[name](name))], write)
