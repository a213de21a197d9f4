//! The weight of the newest second in the weighted average, by the length of the window.

use super::Second;

/// Knative's floor of the newest second's weight: half of the sum lies in the newest four seconds however
/// long the window is.
const LEAST_COEFFICIENT: f64 = 0.2;

/// The weights of the newest second in windows of 1, 2, 3 … seconds, as long as they are above the floor:
/// `1 - p^(1/seconds)`, where `p` is 10⁻⁴, the part of all weight that may lie before the window. These are
/// the numbers that Go computes for Knative. The power functions of other libraries differ from it in the
/// last bits, and where a load is an exact multiple of the target, the last bit is a pod.
const COEFFICIENTS: [f64; 41] = [
    0.999_9,
    0.99,
    0.953_584_111_663_872_1,
    0.9,
    0.841_510_680_753_888_6,
    0.784_556_530_996_811_6,
    0.731_730_420_472_027_4,
    0.683_772_233_983_162,
    0.640_618_633_619_537_2,
    0.601_892_829_446_502_7,
    0.567_123_871_891_694_1,
    0.535_841_116_638_722,
    0.507_611_736_829_326,
    0.482_052_532_076_878_8,
    0.458_830_473_453_536_34,
    0.437_658_674_809_650_9,
    0.418_290_867_062_564_13,
    0.400_515_749_681_058_96,
    0.384_151_788_933_973_6,
    0.369_042_655_519_806_75,
    0.355_053_322_896_237_6,
    0.342_066_775_342_432,
    0.329_981_249_649_041_1,
    0.318_707_930_942_038_75,
    0.308_169_029_081_063_6,
    0.298_296_171_329_617_17,
    0.289_029_056_768_756_45,
    0.280_314_326_998_847_95,
    0.272_104_615_601_684_86,
    0.264_357_745_540_358_6,
    0.257_036_049_240_505_27,
    0.250_105_790_667_544_1,
    0.243_536_672_445_371_14,
    0.237_301_414_097_655_48,
    0.231_375_389_960_226,
    0.225_736_317_318_872_9,
    0.220_363_986_959_476_68,
    0.215_240_029_648_538_72,
    0.210_347_713_150_027_32,
    0.205_671_765_275_718_5,
    0.201_198_219_198_429_73,
];

/// The weight of the newest second in a window of `span` seconds, at least 1.
pub(super) fn coefficient(span: Second) -> f64 {
    let index = usize::try_from(span - 1).unwrap_or(0);
    COEFFICIENTS.get(index).copied().unwrap_or(LEAST_COEFFICIENT)
}
