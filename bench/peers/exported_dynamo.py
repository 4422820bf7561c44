"""Networks of today's torchvision, timm and transformers by PyTorch's exporter of graphs (dynamo), with random weights.

    python3 bench/peers/exported_dynamo.py FOLDER [NAME...]

Needs `pip install torch==2.15.0 torchvision==0.29.2 timm==1.0.31 transformers==5.24.0 onnx==1.23.2 onnxscript==0.7.2 scipy`.
exported.py beside it writes what the older exporter makes; the graphs differ (opset 18 and later, operators of opsets
20 to 23, local functions, sizes as inputs of nodes, dimensions with names, weights beside the file). A family that is
not installed and a network that cannot be exported are left out with a line that says so. Batch 1, f32. Each network is
exported as EXPORTS says: another opset, without the exporter's own optimisation, with dimensions that stay open, with
weights in a file of their own. Compare with `make bench-peers OTHERS=FOLDER PEERS="--parts others"`."""
import torch

from exported import DETECTORS, Flat, settle
from exporting import run

TORCHVISION = """resnet18 densenet121 googlenet shufflenet_v2_x0_5 mobilenet_v3_small regnet_y_400mf efficientnet_v2_s
convnext_tiny swin_v2_t vit_b_32 maxvit_t mvit_v2_s swin3d_t s3d deeplabv3_mobilenet_v3_large
lraspp_mobilenet_v3_large ssdlite320_mobilenet_v3_large fcos_resnet50_fpn retinanet_resnet50_fpn
fasterrcnn_mobilenet_v3_large_320_fpn maskrcnn_resnet50_fpn keypointrcnn_resnet50_fpn raft_small""".split()
TIMM = """hiera_tiny_224 mobilenetv4_conv_small mobilenetv4_hybrid_medium mobilenetv5_base convnextv2_atto fasternet_t0
starnet_s1 mambaout_femto tiny_vit_5m_224 efficientvit_m0 efficientvit_b1 efficientvit_l1 repghostnet_050
naflexvit_base_patch16_gap vitamin_small_224 eva02_tiny_patch14_224 vit_base_patch16_siglip_224
vit_small_patch16_dinov3 fastvit_mci0 swiftformer_xs ghostnetv3_100 csatv2 rdnet_tiny hgnetv2_b0 shvit_s1 lowformer_b0
iformer_t nextvit_small mvitv2_tiny caformer_s18 efficientvim_m1 cpubone_b0_bfrobust lcnetv2_base cspnext_tiny
samvit_base_patch16_224 sam2_hiera_tiny volo_d1_224 maxxvitv2_nano_rw_256 xcit_nano_12_p16_224 gmlp_ti16_224
resnetv2_50d_gn regnetz_005 vit_medium_patch16_rope_reg1_gap_256 flexivit_small coatnext_nano_rw_224 nf_regnet_b0
halonet26t davit_tiny inception_next_atto hgnet_tiny repvit_m0_9 vit_pe_spatial_tiny_patch16_512 beit3_base_patch16_224
levit_128s convmixer_768_32 swin_s3_tiny_224 pvt_v2_b0 focalnet_tiny_srf edgenext_xx_small""".split()
DEPTH = {"vit_base_patch16_siglip_224": 4, "naflexvit_base_patch16_gap": 4, "samvit_base_patch16_224": 4,
         "beit3_base_patch16_224": 4, "convmixer_768_32": 4}
SIZES = {"s3d": (3, 16, 224, 224), "swin3d_t": (3, 8, 112, 112), "mvit_v2_s": (3, 16, 224, 224),
         "sam2_hiera_tiny": (3, 224, 224), "vit_pe_spatial_tiny_patch16_512": (3, 256, 256), "csatv2": (3, 256, 256)}
SMALL = dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536, num_hidden_layers=4)
BASE = dict(num_hidden_layers=4)
# Of transformers: class, configuration class, what differs from its defaults, the inputs by name.
TEXT = {
    "bert": ("BertModel", "BertConfig", BASE, "im"),
    "bert_tokens": ("BertForTokenClassification", "BertConfig", BASE, "imt"),
    "modernbert": ("ModernBertModel", "ModernBertConfig",
                   dict(SMALL, intermediate_size=576, num_hidden_layers=4, pad_token_id=0), "im"),
    "deberta": ("DebertaV2Model", "DebertaV2Config",
                dict(SMALL, relative_attention=True, position_buckets=32, pos_att_type=["p2c", "c2p"],
                     norm_rel_ebd="layer_norm", share_att_key=True), "im"),
    "distilbert": ("DistilBertModel", "DistilBertConfig", dict(n_layers=4), "im"),
    "roberta": ("RobertaModel", "RobertaConfig", BASE, "im"),
    "xlm_roberta_xl": ("XLMRobertaXLModel", "XLMRobertaXLConfig", SMALL, "im"),
    "albert": ("AlbertModel", "AlbertConfig", dict(hidden_size=768, num_attention_heads=12, intermediate_size=3072,
                                                   num_hidden_layers=4), "im"),
    "electra": ("ElectraModel", "ElectraConfig", BASE, "im"),
    "mpnet": ("MPNetModel", "MPNetConfig", BASE, "im"),
    "esm": ("EsmModel", "EsmConfig", dict(SMALL, pad_token_id=1, mask_token_id=2, position_embedding_type="rotary"),
            "im"),
    "fnet": ("FNetModel", "FNetConfig", BASE, "i"),
    "funnel": ("FunnelModel", "FunnelConfig", dict(block_sizes=[2, 2], d_model=384, n_head=6, d_head=64, d_inner=1536),
               "im"),
    "roformer": ("RoFormerModel", "RoFormerConfig", SMALL, "im"),
    "eurobert": ("EuroBertModel", "EuroBertConfig", dict(SMALL, num_key_value_heads=6, pad_token_id=0), "im"),
    "nomic_bert": ("NomicBertModel", "NomicBertConfig", BASE, "im"),
    "jina": ("JinaEmbeddingsV3Model", "JinaEmbeddingsV3Config", BASE, "im"),
    "t5enc": ("T5EncoderModel", "T5Config", dict(num_layers=4), "im"),
    "umt5enc": ("UMT5EncoderModel", "UMT5Config", dict(num_layers=4), "im"),
    "t5gemma_enc": ("T5GemmaEncoderModel", "T5GemmaConfig", {}, "im"),
    "bart_enc": ("BartEncoder", "BartConfig", dict(d_model=384, encoder_layers=4, encoder_attention_heads=6,
                                                   encoder_ffn_dim=1536), "im"),
    "clip_text": ("CLIPTextModel", "CLIPTextConfig", BASE, "im"),
    "siglip_text": ("SiglipTextModel", "SiglipTextConfig", BASE, "i"),
    "layoutlmv3": ("LayoutLMv3Model", "LayoutLMv3Config", BASE, "ibmp"),
    "layoutlm": ("LayoutLMModel", "LayoutLMConfig", BASE, "ibm"),
    "lilt": ("LiltModel", "LiltConfig", BASE, "ibm"),
}
TINY_RESNET = dict(embedding_size=32, hidden_sizes=[32, 64, 128, 256], depths=[1, 1, 1, 1], layer_type="basic")
PICTURES = {
    "vit": ("ViTForImageClassification", "ViTConfig", SMALL, 224),
    "deit": ("DeiTForImageClassification", "DeiTConfig", SMALL, 224),
    "siglip_vision": ("SiglipVisionModel", "SiglipVisionConfig", SMALL, 224),
    "clip_vision": ("CLIPVisionModelWithProjection", "CLIPVisionConfig", SMALL, 224),
    "dinov2": ("Dinov2Model", "Dinov2Config", dict(SMALL, mlp_ratio=4), 224),
    "dinov3": ("DINOv3ViTModel", "DINOv3ViTConfig", SMALL, 224),
    "dinov3_convnext": ("DINOv3ConvNextModel", "DINOv3ConvNextConfig", {}, 224),
    "ijepa": ("IJepaModel", "IJepaConfig", SMALL, 224),
    "beit": ("BeitForImageClassification", "BeitConfig", dict(SMALL, use_relative_position_bias=True), 224),
    "swinv2": ("Swinv2ForImageClassification", "Swinv2Config", dict(embed_dim=96, depths=[2, 2, 2, 2],
                                                                    image_size=256, window_size=8), 256),
    "yolos": ("YolosForObjectDetection", "YolosConfig", dict(SMALL, image_size=[256, 256],
                                                             num_detection_tokens=100), 256),
    "depth_anything": ("DepthAnythingForDepthEstimation", "DepthAnythingConfig", {}, 252),
    "dpt": ("DPTForDepthEstimation", "DPTConfig", dict(SMALL, num_hidden_layers=12), 384),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {}, 512),
    "vitpose": ("VitPoseForPoseEstimation", "VitPoseConfig", {}, (256, 192)),
    "vitdet": ("VitDetModel", "VitDetConfig", dict(SMALL, mlp_ratio=4, window_size=14, image_size=448), 448),
    "sam_vision": ("SamVisionModel", "SamVisionConfig",
                   dict(hidden_size=384, num_attention_heads=6, mlp_dim=1536, num_hidden_layers=4, image_size=512,
                        global_attn_indexes=[1, 3]), 512),
    "sam2_vision": ("Sam2VisionModel", "Sam2VisionConfig", {}, 512),
    "detr": ("DetrForObjectDetection", "DetrConfig",
             dict(encoder_layers=2, decoder_layers=2, use_timm_backbone=False, use_pretrained_backbone=False), 320),
    "conditional_detr": ("ConditionalDetrForObjectDetection", "ConditionalDetrConfig",
                         dict(encoder_layers=2, decoder_layers=2, use_timm_backbone=False,
                              use_pretrained_backbone=False), 320),
    "deformable_detr": ("DeformableDetrForObjectDetection", "DeformableDetrConfig",
                        dict(encoder_layers=2, decoder_layers=2, use_timm_backbone=False,
                             use_pretrained_backbone=False), 320),
    "rtdetr": ("RTDetrForObjectDetection", "RTDetrConfig", {}, 320),
    "rtdetrv2": ("RTDetrV2ForObjectDetection", "RTDetrV2Config", {}, 320),
    "dfine": ("DFineForObjectDetection", "DFineConfig", {}, 320),
    "mask2former": ("Mask2FormerForUniversalSegmentation", "Mask2FormerConfig", {}, 256),
    "maskformer": ("MaskFormerForInstanceSegmentation", "MaskFormerConfig", {}, 256),
    "eomt": ("EomtForUniversalSegmentation", "EomtConfig", dict(SMALL, image_size=256), 256),
    "superpoint": ("SuperPointForKeypointDetection", "SuperPointConfig", {}, 240),
    "mobilevitv2": ("MobileViTV2ForImageClassification", "MobileViTV2Config", {}, 256),
    "pvt_v2": ("PvtV2ForImageClassification", "PvtV2Config", {}, 224),
    "convnextv2": ("ConvNextV2ForImageClassification", "ConvNextV2Config", {}, 224),
    "hiera": ("HieraForImageClassification", "HieraConfig", {}, 224),
    "prompt_depth_anything": ("PromptDepthAnythingForDepthEstimation", "PromptDepthAnythingConfig", {}, 252),
    "vjepa2": ("VJEPA2Model", "VJEPA2Config", dict(SMALL, pred_num_hidden_layers=2, frames_per_clip=4, crop_size=128,
                                                   pred_hidden_size=192, pred_num_attention_heads=6), 0),
    "videomae": ("VideoMAEForVideoClassification", "VideoMAEConfig", dict(SMALL, num_frames=8, image_size=112), 0),
    "timesformer": ("TimesformerForVideoClassification", "TimesformerConfig", dict(SMALL, num_frames=4), 0),
    "efficientloftr": ("EfficientLoFTRModel", "EfficientLoFTRConfig", {}, 0),
}
VIDEOS = {"vjepa2": (4, 128), "videomae": (8, 112), "timesformer": (4, 224)}
PAIRS = {
    "clip": ("CLIPModel", "CLIPConfig", dict(text_config=BASE, vision_config=BASE)),
    "siglip": ("SiglipModel", "SiglipConfig", dict(text_config=dict(num_hidden_layers=4),
                                                   vision_config=dict(num_hidden_layers=4))),
    "owlvit": ("OwlViTForObjectDetection", "OwlViTConfig",
               dict(text_config=BASE, vision_config=dict(num_hidden_layers=4, image_size=256))),
    "grounding_dino": ("GroundingDinoForObjectDetection", "GroundingDinoConfig",
                       dict(encoder_layers=2, decoder_layers=2)),
    "vilt": ("ViltModel", "ViltConfig", dict(num_hidden_layers=4, image_size=224)),
    "groupvit": ("GroupViTModel", "GroupViTConfig", {}),
    "clipseg": ("CLIPSegForImageSegmentation", "CLIPSegConfig", {}),
}
# How a network is exported when not at the exporter's default: opset, optimize, open dimensions, weights in a file of
# their own (external), attention spelled out by the model (eager).
EXPORTS = {
    "resnet18": dict(opset=21), "mobilenet_v3_small": dict(optimize=False), "convnext_tiny": dict(opset=23),
    "vit_b_32": dict(opset=23), "swin_v2_t": dict(opset=20), "maxvit_t": dict(opset=21),
    "efficientnet_v2_s": dict(open={0: "batch"}), "densenet121": dict(external=True),
    "raft_small": dict(opset=20), "deeplabv3_mobilenet_v3_large": dict(opset=21, open={2: "height", 3: "width"}),
    "convnextv2_atto": dict(opset=21),
    "mambaout_femto": dict(opset=20), "tiny_vit_5m_224": dict(open={0: "batch"}), "eva02_tiny_patch14_224":
    dict(opset=23), "vit_base_patch16_siglip_224": dict(opset=20, external=True), "vit_small_patch16_dinov3":
    dict(opset=23, open={0: "batch"}), "resnetv2_50d_gn": dict(opset=21), "coatnext_nano_rw_224": dict(opset=21),
    "fastvit_mci0": dict(optimize=False), "swiftformer_xs": dict(opset=20), "rdnet_tiny": dict(optimize=False),
    "hgnetv2_b0": dict(open={0: "batch", 2: "height", 3: "width"}), "xcit_nano_12_p16_224": dict(opset=23),
    "beit3_base_patch16_224": dict(opset=23), "davit_tiny": dict(open={0: "batch"}),
    "vit_medium_patch16_rope_reg1_gap_256": dict(opset=23), "edgenext_xx_small": dict(opset=23),
    "bert": dict(opset=23, open={0: "batch", 1: "sequence"}), "bert_tokens": dict(optimize=False),
    "modernbert": dict(open={0: "batch", 1: "sequence"}), "distilbert": dict(open={1: "sequence"}),
    "roberta": dict(opset=21), "esm": dict(opset=23), "eurobert": dict(opset=23), "t5enc": dict(eager=True), "umt5enc": dict(eager=True, opset=23),
    "t5gemma_enc": dict(opset=23), "electra": dict(opset=20), "layoutlmv3": dict(opset=20, eager=True), "beit": dict(eager=True),
    "clip_text": dict(open={0: "batch"}), "siglip_text": dict(opset=23),
    "vit": dict(opset=23), "dinov2": dict(opset=20, open={0: "batch"}), "dinov3": dict(opset=23),
    "siglip_vision": dict(opset=21), "segformer": dict(opset=20), "detr": dict(opset=20), "samvit_base_patch16_224": dict(eager=True), "maxxvitv2_nano_rw_256": dict(eager=True),
    "rtdetrv2": dict(opset=20, eager=True), "dfine": dict(opset=20, eager=True), "deformable_detr": dict(opset=20),
    "mask2former": dict(opset=20), "grounding_dino": dict(opset=20), "depth_anything": dict(opset=21),
    "sam_vision": dict(opset=20, eager=True), "owlvit": dict(opset=21), "yolos": dict(opset=23), "videomae": dict(opset=23),
    "albert": dict(external=True), "vitpose": dict(optimize=False, opset=20), "hiera": dict(open={0: "batch"}),
}


def of_torchvision(name):
    import torchvision.models as models
    bare = dict(weights=None, weights_backbone=None)
    options = bare if any(h in name for h in DETECTORS + ("fcos", "deeplab", "lraspp")) else {}
    if name == "googlenet":
        options = dict(init_weights=True, aux_logits=False, transform_input=False)
    model = models.get_model_builder(name)(**options)
    if name.startswith("raft"):
        return Flat(model.eval()), (torch.randn(1, 3, 128, 160), torch.randn(1, 3, 128, 160))
    if any(d in name for d in DETECTORS + ("fcos",)):
        return Flat(model.eval()), (torch.rand(1, 3, 320, 320),)
    x = torch.randn(1, *SIZES.get(name, (3, 224, 224)))
    return Flat(settle(model, x)), (x,)


def of_timm(name):
    import timm
    options = dict(img_size=SIZES[name][1:]) if "vit_pe" in name else {}
    timm.layers.set_fused_attn(not EXPORTS.get(name, {}).get("eager"))
    model = timm.create_model(name, pretrained=False, **options)
    blocks = getattr(model, "blocks", None)
    if name in DEPTH and blocks is not None:
        model.blocks = type(blocks)(*list(blocks)[:DEPTH[name]]) if isinstance(blocks, torch.nn.Sequential) \
            else torch.nn.ModuleList(list(blocks)[:DEPTH[name]])
    x = torch.randn(1, *SIZES.get(name, model.default_cfg.get("input_size", (3, 224, 224))))
    for m in model.modules():  # scales of layers that begin near zero would hide what is below them
        if isinstance(getattr(m, "gamma", None), torch.nn.Parameter) and m.gamma.numel() > 1:
            m.gamma.data.fill_(0.5)
    return Flat(settle(model, x)), (x,)


def made(kind, config, options, eager=False):
    import transformers
    model = getattr(transformers, kind, None)
    if model is None:  # encoders that are part of a module alone
        import importlib
        base = {"BartEncoder": "bart"}[kind]
        model = getattr(importlib.import_module("transformers.models.%s.modeling_%s" % (base, base)), kind)
    model = model(getattr(transformers, config)(**options)).eval()
    if eager:  # what the exporter's own decomposition of attention cannot do
        model.set_attn_implementation("eager")
    for m in model.modules():
        if hasattr(m, "config") and getattr(m.config, "use_cache", False):
            m.config.use_cache = False
    return model


def of_text(name):
    kind, config, options, what = TEXT[name]
    vocabulary = {} if name == "t5gemma_enc" else dict(vocab_size=5000)
    if name == "t5gemma_enc":
        part = dict(SMALL, num_key_value_heads=2, head_dim=64, vocab_size=5000)
        options = dict(encoder=part, decoder=part, vocab_size=5000, is_encoder_decoder=False)
    model = made(kind, config, dict(vocabulary, **options), EXPORTS.get(name, {}).get("eager"))
    inputs = {}
    if "i" in what:
        inputs["input_ids"] = torch.randint(5, 900, (1, 64))
    if "b" in what:
        inputs["bbox"] = torch.randint(0, 90, (1, 64, 4)).sort(-1)[0][..., [0, 1, 2, 3]]
    if "m" in what:
        inputs["attention_mask"] = torch.ones(1, 64, dtype=torch.long)
    if "t" in what:
        inputs["token_type_ids"] = torch.zeros(1, 64, dtype=torch.long)
    if "p" in what:
        inputs["pixel_values"] = torch.randn(1, 3, 224, 224)
    return Flat(model, list(inputs)), tuple(inputs.values())


def of_pictures(name):
    import transformers as t
    kind, config, options, size = PICTURES[name]
    options = dict(options)
    if name in ("detr", "conditional_detr", "deformable_detr"):
        options.update(backbone_config=t.ResNetConfig(out_features=["stage4"] if "deform" not in name else
                                                      ["stage2", "stage3", "stage4"], **TINY_RESNET), backbone=None)
    if name.startswith("rtdetr"):
        options.update(backbone_config=t.RTDetrResNetConfig(out_features=["stage2", "stage3", "stage4"],
                                                            depths=[1, 1, 1, 1], layer_type="basic",
                                                            hidden_sizes=[64, 64, 128, 256]),
                       encoder_in_channels=[64, 128, 256], decoder_layers=2)
    if name == "dfine":
        options.update(decoder_layers=2)
    if "depth" in name:
        options.update(backbone_config=t.Dinov2Config(**SMALL, image_size=252, out_features=["stage1", "stage2",
                       "stage3", "stage4"], reshape_hidden_states=False, apply_layernorm=True),
                       reassemble_hidden_size=384, neck_hidden_sizes=[48, 96, 192, 384], fusion_hidden_size=64)
    if name == "vitpose":
        options.update(backbone_config=t.VitPoseBackboneConfig(**SMALL, out_features=["stage4"]))
    if name == "dpt":
        options.update(backbone_out_indices=[2, 5, 8, 11], neck_hidden_sizes=[48, 96, 192, 384],
                       fusion_hidden_size=64)
    if name in ("mask2former", "maskformer"):
        options.update(backbone_config=t.SwinConfig(depths=[1, 1, 1, 1], out_features=["stage1", "stage2", "stage3",
                                                                                      "stage4"]))
        if name == "mask2former":
            options.update(decoder_layers=3, encoder_layers=2, num_queries=50)
    model = made(kind, config, options, EXPORTS.get(name, {}).get("eager"))
    if name == "efficientloftr":
        return Flat(model, ["pixel_values"]), (torch.rand(1, 2, 3, 128, 160),)
    if name in VIDEOS:
        frames, side = VIDEOS[name]
        x = torch.randn(1, frames, 3, side, side)
        return Flat(model, ["pixel_values_videos" if name == "vjepa2" else "pixel_values"]), (x,)
    x = torch.randn(1, 3, *(size if isinstance(size, tuple) else (size, size)))
    if name == "prompt_depth_anything":
        return Flat(model, ["pixel_values", "prompt_depth"]), (x, torch.rand(1, 1, 63, 63))
    return Flat(settle(model, x), ["pixel_values"]), (x,)


def of_pairs(name):
    kind, config, options = PAIRS[name]
    options = dict(options)
    import transformers as t
    if name == "grounding_dino":
        options.update(backbone_config=t.SwinConfig(depths=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"]),
                       text_config=t.BertConfig(num_hidden_layers=2, vocab_size=5000))
    model = made(kind, config, options)
    side = {"groupvit": 224, "clip": 224, "siglip": 224, "vilt": 224, "clipseg": 224}.get(name, 256)
    texts = 1
    ids = torch.randint(5, 900, (texts, 16))
    inputs = {"input_ids": ids, "pixel_values": torch.randn(1, 3, side, side)}
    if name not in ("siglip",):
        inputs["attention_mask"] = torch.ones_like(ids)
    return Flat(model, list(inputs)), tuple(inputs.values())


class ByName(torch.nn.Module):
    """A model whose inputs have the names that others know them by."""

    def __init__(self, model, names):
        super().__init__()
        self.model = model
        words = ", ".join(names)
        exec("def forward(self, %s):\n    return self.model(%s)" % (words, words), globals(), made := {})
        self.forward = made["forward"].__get__(self)


def write(path, name, make):
    how = EXPORTS.get(name, {})
    model, inputs = make(name)
    names = model.names or ["in%d" % i for i in range(len(inputs))]
    shapes = None
    if "open" in how:
        dims = how["open"]
        shapes = tuple({d: torch.export.Dim.DYNAMIC for d in dims if d < x.dim()} for x in inputs)
    program = torch.onnx.export(ByName(model, names).eval(), inputs, dynamo=True, verbose=False,
                                input_names=names, opset_version=how.get("opset", 18),
                                optimize=how.get("optimize", True), dynamic_shapes=shapes)
    program.save(path, external_data=how.get("external", False))


if __name__ == "__main__":
    run(__doc__, ((TORCHVISION, of_torchvision), (TIMM, of_timm), (list(TEXT), of_text), (list(PICTURES), of_pictures),
                  (list(PAIRS), of_pairs)), write)
