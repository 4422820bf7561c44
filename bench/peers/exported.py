"""Networks of torchvision, timm and transformers with random weights, as their users export them: one ONNX file each.

    python3 bench/peers/exported.py FOLDER [NAME...]

Needs torch and torchvision (Debian: apt install python3-torch python3-torchvision) and, for the other two families,
`pip install timm==0.9.12 transformers==4.33.3 onnx==1.16.2 "numpy<2"`. A family that is not installed and a network that
cannot be exported are left out with a line that says so. Batch 1, f32, opset 17. Batch normalisations get the statistics
of random pictures, so that numbers stay in range. Compare with `make bench-peers OTHERS=FOLDER PEERS="--parts others"`."""
import torch

from exporting import run, tensors

# Classifiers by name; sizes other than 224 are in SIZES.
TORCHVISION = """alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 mnasnet1_0
mobilenet_v3_large regnet_x_800mf regnet_y_1_6gf resnext50_32x4d shufflenet_v2_x1_0 squeezenet1_1 swin_t vgg11 resnet18
maxvit_t r3d_18 r2plus1d_18 s3d deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large fcn_resnet50
ssdlite320_mobilenet_v3_large ssd300_vgg16 fasterrcnn_mobilenet_v3_large_320_fpn retinanet_resnet50_fpn raft_small""".split()
TIMM = """mobilevit_s levit_128 edgenext_small ghostnet_100 poolformer_s12 resmlp_12_224 twins_svt_small pvt_v2_b1
xcit_nano_12_p16_224 crossvit_9_240 coat_lite_tiny nfnet_l0 hrnet_w18_small res2net50_14w_8s dla34 repvgg_a0 resnest14d
skresnet18 ecaresnet50t botnet26t_256 lambda_resnet26t cait_xxs24_224 beit_base_patch16_224 coatnet_0_rw_224 gcvit_xxtiny
fastvit_t8 repvit_m1 davit_tiny focalnet_tiny_srf sequencer2d_s ese_vovnet19b_dw cspresnet50 selecsls42b mobileone_s0
tf_efficientnet_lite0 rexnet_100 visformer_tiny tnt_s_patch16_224 nest_tiny convit_tiny pit_ti_224
eva02_tiny_patch14_224 mixer_s32_224 tinynet_e lcnet_050 efficientvit_b0 efficientformerv2_s0 inception_next_tiny
regnetz_b16 seresnext26d_32x4d xception41 dpn68 hardcorenas_a gernet_s eca_botnext26ts_256 bat_resnext26ts
sebotnet33ts_256 swinv2_cr_tiny_ns_224 resnetv2_50x1_bit darknet53 mixnet_s fbnetv3_b ghostnetv2_100
vit_relpos_small_patch16_224 dla60_res2net resnetaa50 vit_small_r26_s32_224 tf_efficientnetv2_b0 mobilevitv2_050
cs3darknet_focus_m resnext26ts legacy_seresnext26_32x4d crossvit_tiny_240 deit3_small_patch16_224
efficientnet_es gc_efficientnetv2_rw_t mnasnet_small pit_s_distilled_224 regnetv_040 resnet33ts resnetblur50 resnetrs50
semnasnet_075 seresnet33ts spnasnet_100 twins_pcpvt_small vit_tiny_r_s16_p8_224 wide_resnet50_2 ecaresnet26t cspdarknet53
edgenext_base eca_nfnet_l0 deit_tiny_distilled_patch16_224 fbnetc_100 inception_v4 mobilevit_xxs nf_regnet_b1
repghostnet_050 res2next50 skresnext50_32x4d xcit_tiny_12_p8_224 maxvit_nano_rw_256 swin_s3_tiny_224 convnext_atto
jx_nest_tiny regnetz_c16 cait_xxs36_224 tresnet_m resnetv2_50d_evos vovnet39a mobilenetv3_rw rexnetr_200 tf_mixnet_s""".split()
SIZES = {"inception_v3": (3, 299, 299), "r3d_18": (3, 8, 112, 112), "r2plus1d_18": (3, 8, 112, 112),
         "s3d": (3, 16, 224, 224)}
DETECTORS = ("rcnn", "retina", "ssd")
# Of transformers: class, configuration class, what differs from its defaults. Four layers each.
TEXT = {
    "distilbert": ("DistilBertModel", "DistilBertConfig", dict(n_layers=4)),
    "roberta": ("RobertaModel", "RobertaConfig", {}),
    "albert": ("AlbertModel", "AlbertConfig",
               dict(hidden_size=768, num_attention_heads=12, intermediate_size=3072)),
    "deberta": ("DebertaV2Model", "DebertaV2Config",
                dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536, relative_attention=True,
                     position_buckets=32, pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", share_att_key=True)),
    "electra": ("ElectraModel", "ElectraConfig", {}),
    "mobilebert": ("MobileBertModel", "MobileBertConfig", {}),
    "squeezebert": ("SqueezeBertModel", "SqueezeBertConfig", {}),
    "xlnet": ("XLNetModel", "XLNetConfig", dict(d_model=512, n_head=8, d_inner=2048, n_layer=4)),
    "convbert": ("ConvBertModel", "ConvBertConfig", {}),
    "mpnet": ("MPNetModel", "MPNetConfig", {}),
    "nystrom": ("NystromformerModel", "NystromformerConfig", dict(max_position_embeddings=512)),
    "ibert": ("IBertModel", "IBertConfig", {}),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(n_layer=4)),
    "opt": ("OPTForCausalLM", "OPTConfig", dict(word_embed_proj_dim=768)),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(hidden_size=512, n_layer=4, n_head=8)),
    "neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig",
             dict(hidden_size=512, num_attention_heads=8, intermediate_size=2048)),
    "llama": ("LlamaForCausalLM", "LlamaConfig",
              dict(hidden_size=768, num_attention_heads=12, intermediate_size=2048)),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", dict(n_embd=512, n_layer=4, n_head=8, rotary_dim=32)),
    "falcon": ("FalconForCausalLM", "FalconConfig", dict(hidden_size=512, num_attention_heads=8)),
    "rembert": ("RemBertModel", "RemBertConfig", dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536)),
    "nezha": ("NezhaModel", "NezhaConfig", {}),
    "luke": ("LukeModel", "LukeConfig", {}),
    "mra": ("MraModel", "MraConfig", dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536)),
    "deberta1": ("DebertaModel", "DebertaConfig", dict(pos_att_type=["c2p", "p2c"], relative_attention=True)),
    "xlm": ("XLMModel", "XLMConfig", dict(emb_dim=512, n_layers=4, n_heads=8)),
    "ctrl": ("CTRLModel", "CTRLConfig", dict(n_embd=512, dff=1536, n_layer=4, n_head=8)),
    "openai_gpt": ("OpenAIGPTModel", "OpenAIGPTConfig", dict(n_embd=512, n_layer=4, n_head=8)),
    "gpt_bigcode": ("GPTBigCodeModel", "GPTBigCodeConfig", dict(n_embd=512, n_layer=4, n_head=8)),
    "biogpt": ("BioGptModel", "BioGptConfig", dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536)),
    "t5enc": ("T5EncoderModel", "T5Config", {}),
    "longt5": ("LongT5EncoderModel", "LongT5Config", {}),
}
PICTURES = {
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {}, 512),
    "dpt": ("DPTForDepthEstimation", "DPTConfig",
            dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536), 384),
    "glpn": ("GLPNForDepthEstimation", "GLPNConfig", {}, 256),
    "cvt": ("CvtForImageClassification", "CvtConfig", {}, 224),
    "levit": ("LevitForImageClassification", "LevitConfig", {}, 224),
    "van": ("VanForImageClassification", "VanConfig", dict(depths=[2, 2, 4, 2]), 224),
    "mobilenetv1": ("MobileNetV1ForImageClassification", "MobileNetV1Config", {}, 224),
    "swin2sr": ("Swin2SRForImageSuperResolution", "Swin2SRConfig",
                dict(embed_dim=60, depths=[2, 2], num_heads=[6, 6]), 64),
    "bit": ("BitForImageClassification", "BitConfig", dict(depths=[1, 2, 2, 1]), 224),
    "dinov2": ("Dinov2Model", "Dinov2Config",
               dict(hidden_size=384, num_attention_heads=6, num_hidden_layers=4), 224),
    "focalnet": ("FocalNetForImageClassification", "FocalNetConfig", {}, 224),
    "efficientformer": ("EfficientFormerForImageClassification", "EfficientFormerConfig", {}, 224),
}


class Flat(torch.nn.Module):
    """A model whose outputs are one row of tensors."""

    def __init__(self, model, names=None):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *args):
        if not self.names:
            return tuple(tensors(self.model(*args)))
        return tuple(tensors(self.model(**dict(zip(self.names, args)), return_dict=False)))


def settle(model, x):
    """Statistics of batch normalisations, of two pictures of noise."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    for n in norms:
        if n.affine and not n.weight.any():  # before training some branches add nothing: engines may leave them out
            n.weight.data.fill_(0.5)
        n.momentum = None
        n.reset_running_stats()
    if norms:
        model.train()
        with torch.no_grad():
            model(x.repeat(2, *[1] * (x.dim() - 1)))
    return model.eval()


def of_torchvision(name):
    import torchvision.models as models
    bare = dict(weights=None, weights_backbone=None)
    heads = DETECTORS + ("deeplab", "fcn", "lraspp")
    options = bare if any(h in name for h in heads) else {}
    if name in ("inception_v3", "googlenet"):
        options = dict(init_weights=True, aux_logits=False, transform_input=False)
    model = models.get_model_builder(name)(**options)
    if name.startswith("raft"):
        return Flat(model.eval()), (torch.randn(1, 3, 128, 160), torch.randn(1, 3, 128, 160))
    if any(d in name for d in DETECTORS):
        return Flat(model.eval()), (torch.rand(1, 3, 320, 320),)
    x = torch.randn(1, *SIZES.get(name, (3, 224, 224)))
    return Flat(settle(model, x)), (x,)


def of_timm(name):
    import timm
    model = timm.create_model(name, pretrained=False, exportable=True)
    x = torch.randn(1, *model.default_cfg.get("input_size", (3, 224, 224)))
    for m in model.modules():  # scales of layers that begin near zero would hide what is below them
        if isinstance(getattr(m, "gamma", None), torch.nn.Parameter) and m.gamma.numel() > 1:
            m.gamma.data.fill_(0.5)
    return Flat(settle(model, x)), (x,)


def of_transformers(name):
    import transformers
    if name in PICTURES:
        kind, config, options, size = PICTURES[name]
        model = getattr(transformers, kind)(getattr(transformers, config)(**options)).eval()
        x = torch.randn(1, 3, size, size)
        return Flat(settle(model, x), ["pixel_values"]), (x,)
    kind, config, options = TEXT[name]
    layers = {} if {"n_layer", "n_layers"} & set(options) or name in ("t5enc", "longt5") else dict(num_hidden_layers=4)
    model = getattr(transformers, kind)(getattr(transformers, config)(vocab_size=5000, **layers, **options)).eval()
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    ids = torch.randint(5, 900, (1, 64))
    return Flat(model, ["input_ids", "attention_mask"]), (ids, torch.ones(1, 64, dtype=torch.long))


def write(path, name, make):
    model, inputs = make(name)
    with torch.no_grad():
        torch.onnx.export(model.eval(), inputs, path, opset_version=17,
                          input_names=model.names or ["in%d" % i for i in range(len(inputs))],
                          do_constant_folding=True)


if __name__ == "__main__":
    run(__doc__, ((TORCHVISION, of_torchvision), (TIMM, of_timm), (list(TEXT) + list(PICTURES), of_transformers)), write)
