'use strict';
/* What hone.say says in Chinese. {0}, {1}... are values; what is missing here stays English. */
hone.words = {
  'Theme: auto': '主题：自动', 'Theme: light': '主题：浅色', 'Theme: dark': '主题：深色',
  'This panel could not be drawn: {0}': '无法绘制这一部分：{0}',

  /* words of the schemas */
  high: '高', medium: '中', low: '低', note: '说明', trade: '取舍',
  measured: '实测', roofline: '屋顶线', table: '表', model: '模型',
  same: '相同', slower: '变慢', faster: '变快', unclear: '不明',
  fused: '融合', split: '拆分', regrouped: '重组', 'new': '新增', gone: '消失',
  compute: '计算', memory: '内存', latency: '延迟', unknown: '未知', different: '不同', mistrusted: '不可信',
  layers: '层', reformats: '布局转换', host: '主机', pre: '前处理', post: '后处理', gaps: '空隙', copies: '拷贝', sync: '同步', wall: '墙钟',

  'executed: {0}FLOP of {1}FLOP, {2} GFLOP/s': '实际执行：{0}FLOP（公式 {1}FLOP），{2} GFLOP/s',

  /* key figures */
  threads: '线程', precision: '精度', batch: '批量', commit: '提交',
  'Speed-up, measured': '实测加速', 'predicted \u00d7{0}': '预计 \u00d7{0}',
  'Median latency': '延迟中位数', 'Best latency': '最短延迟', 'p95 latency': 'p95 延迟', 'was {0}': '之前 {0}',
  Throughput: '吞吐量', 'ceiling {0} /s': '上限 {0} /s', Arithmetic: '运算', '{0}FLOP a run': '每次运行 {0}FLOP',
  'shapes not recorded': '未记录形状', 'Peak memory': '内存峰值', 'peak resident set of the process': '进程的最大常驻内存',
  'weights and planned activations': '权重与计划的激活值', 'memory of the device': '设备内存', 'not measured': '未测量',
  Answers: '答案', '{0} inputs, off by {1}': '{0} 组输入，相差 {1}', Spread: '波动', '{0} runs': '{0} 次运行',
  'one run tells nothing of it': '一次运行说明不了',

  /* hardware counters */
  'Hardware counters': '硬件计数器',
  'What the device itself counted while each step ran; shares are of the most that it can do.': '设备在每一步运行时自己的计数；比例相对于它的极限。',
  'tensor units': '张量单元', '{0} hits': '{0} 命中', occupancy: '占用率', 'instructions a cycle': '每周期指令', 'issue slots': '发射槽',
  'branch efficiency': '分支效率', 'threads an instruction': '每条指令的线程', 'cube utilisation': '矩阵单元利用率', 'misses of the last cache': '末级缓存缺失',
  'branch misses in 1000': '每千条指令的分支错', 'DRAM, estimated': 'DRAM（估计）',
  'bound by its hardware counters': '受限判断来自硬件计数器', 'bound by measured roofs': '受限判断来自实测上限', 'bound by intensity alone': '受限判断仅凭强度', 'with low confidence': '置信度低',

  /* where the time goes */
  'Where the time goes': '时间花在哪里',
  'Share of the wall by operator type; everything adds up to an outer clock.': '各算子类型占墙钟的比例；全部相加等于外部时钟。',
  before: '之前', after: '之后', '{0} layer': '{0} 层', '{0} layers': '{0} 层', 'gaps and residual': '空隙与残差', other: '其他',
  'residual {0}': '残差 {0}', 'residual not measured': '残差未测量', 'The record contradicts itself: {0}': '记录自相矛盾：{0}',

  /* before and after */
  'Before and after': '前后对比', 'Answers were not compared.': '没有比较答案。',
  'Answers: {0}, on {1} inputs; largest relative difference {2}, allowed {3}.': '答案：{0}，{1} 组输入；最大相对差异 {2}，允许 {3}。',
  'Executed steps': '执行的步骤', 'Bytes moved': '搬运的字节', 'Activations at peak': '激活值峰值',
  'Every measured run': '每次测量的运行', 'Histogram of the measured latencies before and after': '前后延迟的直方图',
  '{0} of {1} runs': '{1} 次运行中的 {0} 次', '{0} to {1}': '{0} 到 {1}',
  'Gain: what was predicted, what came out': '收益：预计的与实际的', predicted: '预计',

  /* what changed */
  'What changed': '有何变化', 'same: too small to count': '相同：差异太小，不计', 'may be chance: inside the noise': '可能是偶然：在噪声之内',
  'same: inside the noise': '相同：在噪声之内', 'by chance?': '偶然？', 'no samples to test': '没有可检验的样本',
  'Median run {0} \u2192 {1}: {2} ({3}).': '中位数运行 {0} \u2192 {1}：{2}（{3}）。',
  'Layers: {0} slower, {1} faster, {2} the same, {3} unclear; {4} new, {5} gone, {6} fused, split or regrouped.':
    '层：{0} 个变慢，{1} 个变快，{2} 个相同，{3} 个不明；{4} 个新增，{5} 个消失，{6} 个融合、拆分或重组。',
  'Compare with care: {0}.': '比较时请注意：{0}。', layer: '层', change: '变化', all: '全部', 'No such layer.': '没有这样的层。',
  'Show the 20 largest differences only': '只显示差异最大的 20 个', 'Show all {0} rows': '显示全部 {0} 行', nothing: '无',
  'before: {0}': '之前：{0}', 'after: {0}': '之后：{0}', 'aligned by {0}': '对齐依据：{0}', 'nothing on the other side': '另一侧没有对应', 'not tested': '未检验',

  /* findings */
  Findings: '发现',
  '{0} found: changes of structure first, then fine tuning, then what gives something up and notes; in each the largest predicted gain first.':
    '共 {0} 条：先是结构上的改动，再是细调，然后是有取舍的与说明；各类中预计收益最大的在前。',
  'Without times there is nothing to judge.': '没有时间数据，无从判断。', 'Nothing worth doing was found.': '没有值得做的事。',
  'The same cause: {0}': '同一原因：{0}', 'About the model before the rewrite ({0}; {1} after it).': '以下针对改写前的模型（{0}；改写后 {1}）。',
  '{0} of it could go': '其中 {0} 可以省去', '{0} layers: {1}': '{0} 层：{1}',
  'What has a measured gain is done already.': '带有“实测”的已经完成。', 'predicted, end to end': '预计，端到端', '{0} to {1}, confidence {2}': '{0} 到 {1}，置信度 {2}',
  'P {0} of the time, S \u00d7{1}': 'P 占时间的 {0}，S \u00d7{1}', 'S by {0}: {1}': 'S 的依据（{0}）：{1}',
  'What is left (the plan after the rewrite)': '还剩什么（改写之后的计划）', 'Said above, and still so: {0}.': '上面说过，依然成立：{0}。',
  'To see more:': '进一步查看：', 'In your program:': '在你的程序里：', 'To see more, in your program:': '在你的程序里进一步查看：', 'Copy the command': '复制命令', copied: '已复制', copy: '复制',

  /* timeline */
  Timeline: '时间线', 'One typical run; both profiles share the scale.': '一次典型的运行；前后使用同一比例。', 'No spans were recorded.': '没有记录时段。',
  'Timeline: plus and minus zoom, arrow keys move': '时间线：加减号缩放，方向键移动',
  'Wheel or + and \u2212 to zoom, drag or arrow keys to move, double click for everything.': '滚轮或 + 与 \u2212 缩放，拖动或方向键移动，双击显示全部。',
  'Zoom in': '放大', 'Zoom out': '缩小', 'Show everything': '显示全部', 'lane {0}': '泳道 {0}', '{0}, from {1}': '{0}，始于 {1}',

  /* layers */
  Layers: '层', 'Mean exclusive time of each executed step; the tick is the 95th percentile.': '每个执行步骤的平均独占时间；竖线是第 95 百分位。',
  slowest: '最慢优先', 'in order': '按执行顺序', step: '步骤', time: '时间', share: '占比', 'of roof': '屋顶线', 'limited by': '受限于',
  'Show the first 15 only': '只显示前 15 个', 'Show all {0} steps': '显示全部 {0} 个步骤', 'tactic {0}': '战术 {0}', 'no tactic recorded': '未记录战术',
  'p50 {0}, p95 {1}, min {2}, CV {3}': 'p50 {0}，p95 {1}，最小 {2}，CV {3}', 'from {0}': '来自 {0}',

  /* roofline and memory */
  Roofline: '屋顶线', 'Each dot is a step, its area the time it takes; lines are measured on this machine.': '每个点是一个步骤，面积是它的时间；线是本机实测。',
  'Neither FLOPs nor bytes are known for the steps.': '各步骤的 FLOP 与字节都未知。', 'after, by operator type': '之后，按算子类型',
  'Roofline: GFLOP/s over FLOP per byte': '屋顶线：GFLOP/s 对每字节 FLOP', 'FLOP per byte': '每字节 FLOP',
  '{0} GFLOP/s at {1} FLOP per byte': '{0} GFLOP/s，每字节 {1} FLOP', '{0}, {1} of the roof, limited by {2}': '{0}，达到屋顶线的 {1}，受限于{2}',
  'Memory over time': '内存随时间的变化', 'Activations: {0} planned': '激活值：计划 {0}', '{0} used': '使用 {0}', 'use not measured': '使用量未测量',
  '{0} without reuse': '不复用需 {0}', 'weights {0}': '权重 {0}', 'resident at most {0}': '常驻最多 {0}', planned: '计划', resident: '常驻',
  'Memory was not sampled in this run.': '本次运行没有对内存采样。', 'peak, {0}': '峰值，{0}', 'at {0}': '在 {0}',

  /* how this was measured */
  'How this was measured': '如何测量', 'measured runs': '测量次数', ' (interrupted)': '（被中断）', ' after {0} warm-ups': '，预热 {0} 次之后', 'seed of the inputs': '输入的随机种子',
  'one time stamp costs': '一个时间戳的开销', 'outer clock': '外部时钟', 'spans lost': '丢失的时段', 'ONNX nodes, executed steps': 'ONNX 节点，执行的步骤',
  'graph passes': '图优化遍', 'load time': '加载时间', system: '系统', options: '选项', temperature: '温度', 'not measured: {0}': '未测量：{0}',
  'Shown by hone, measured by {0}. This file is complete: it loads nothing.': '由 hone 展示，由 {0} 测量。本文件是完整的，不加载任何东西。',
  'Made by {0}. This file is complete: it loads nothing.': '由 {0} 生成。本文件是完整的，不加载任何东西。',
};
