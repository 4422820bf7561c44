"""Networks of transformers and diffusers, small; exported_further.py exports them."""
import torch

from exported_kinds import Flat, of

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


ALL = {n: text for n in TEXT}
ALL.update({n: sound for n in ("speech2text", "speecht5", "mimi", "dac_enc", "dac_dec", "clap", "musicgen", "unispeech_sat",
                               "sew_d", "seamless_enc", "fastspeech2")})
ALL.update({n: series for n in ("autoformer", "time_series_transformer")})
ALL.update({n: seen for n in ("zoedepth", "vivit", "perceiver", "blip2_qformer", "pix2struct", "trocr", "pixtral",
                              "upernet", "vitmatte")})
ALL.update({n: drawn for n in ("controlnet", "unet3d", "vq", "flux", "sana", "pixart", "wan", "dc_ae", "prior")})
