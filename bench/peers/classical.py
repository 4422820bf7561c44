"""Models of classical learning as skl2onnx and onnxmltools convert them: trees, kernels, neighbours, text, pipelines.

    python3 bench/peers/classical.py FOLDER [NAME...]

Needs `pip install scikit-learn skl2onnx lightgbm xgboost onnxmltools onnx`. Trained on seeded random numbers; what is
not installed or cannot be converted is left out with a line that says so. Rows are open: NAME.shapes beside the file says
how many its uses have, a line each: what it is called, then what `hone --shape` is given. Models that read texts have
their inputs in NAME.npz. Compare the others with `make bench-peers OTHERS=FOLDER PEERS="--parts others"`."""
import os
import sys
import warnings

import numpy as np

WIDTH, ROWS = 24, 256
random = np.random.RandomState(7)
x = random.standard_normal((600, WIDTH)).astype(np.float32)
score = x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + 0.3 * x[:, 3]
labels = (score > 0).astype(np.int64)
many = np.digitize(score, [-1, 0, 1]).astype(np.int64)
rows = random.standard_normal((ROWS, WIDTH)).astype(np.float32)
words = "the quick brown fox jumps over a lazy dog and runs far away from every other slow animal".split()
texts = np.array([" ".join(random.choice(words, 9)) for _ in range(200)])


def sk(path, *fitted, y=None, data=None, types=None, options=None):
    """One model, or several as a pipeline."""
    from sklearn.pipeline import make_pipeline
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType
    model = make_pipeline(*fitted) if len(fitted) > 1 else fitted[0]
    model.fit(x if data is None else data, labels if y is None else y)
    if options is not None:
        options = {id(model): options}
    made = to_onnx(model, initial_types=types or [("x", FloatTensorType([None, WIDTH]))], options=options,
                   target_opset={"": 18, "ai.onnx.ml": 3})
    save(path, made)


def save(path, made):
    with open(path, "wb") as f:
        f.write(made.SerializeToString())


def plain(module, kind, y=labels, before=(), **settings):
    """A model of scikit-learn by its module and class; classifiers give a matrix of probabilities, not a map."""
    def make(path):
        import importlib
        from sklearn.base import is_classifier
        model = getattr(importlib.import_module("sklearn." + module), kind)(**settings)
        sk(path, *[b() for b in before], model, y=y, options={"zipmap": False} if is_classifier(model) else None)
    return make


def scaler():
    from sklearn.preprocessing import StandardScaler
    return StandardScaler()


def quantiles():
    from sklearn.preprocessing import KBinsDiscretizer
    return KBinsDiscretizer(5, encode="onehot-dense")


def text(kind, head, **settings):
    def make(path):
        from sklearn.feature_extraction import text as module
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import MultinomialNB
        from skl2onnx.common.data_types import StringTensorType
        y = np.array([t.count("fox") > 0 for t in texts]).astype(np.int64)
        sk(path, getattr(module, kind)(**settings), {"linear": LogisticRegression, "bayes": MultinomialNB}[head](), y=y,
           data=texts, types=[("text", StringTensorType([None]))], options={"zipmap": False})
        np.savez(path[:-4] + "npz", text=texts[:64].astype(object))
    return make


def columns(path):
    """Columns of numbers and of words, each with its own preparation."""
    import pandas
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "town": random.choice(words[:5], 600)})
    model = make_pipeline(ColumnTransformer([("n", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
                                             ("w", OneHotEncoder(handle_unknown="ignore"), ["town"])]),
                          GradientBoostingClassifier(n_estimators=20))
    model.fit(frame, labels)
    kinds = [("a", FloatTensorType([None, 1])), ("b", FloatTensorType([None, 1])), ("town", StringTensorType([None, 1]))]
    save(path, to_onnx(model, initial_types=kinds, options={id(model): {"zipmap": False}}, target_opset=18))
    np.savez(path[:-4] + "npz", a=rows[:, :1], b=rows[:, 1:2], town=random.choice(words[:6], (ROWS, 1)).astype(object))


def boosted(package, kind, y=labels, **settings):
    def make(path):
        import importlib
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType
        model = getattr(importlib.import_module(package), kind)(**settings)
        model.fit(x, y)
        convert = getattr(onnxmltools, "convert_" + package)
        extra = dict(zipmap=False) if package == "lightgbm" else {}
        save(path, convert(model, initial_types=[("x", FloatTensorType([None, WIDTH]))], target_opset=15, **extra))
    return make


ALL = {
    "forest": plain("ensemble", "RandomForestClassifier", many, n_estimators=100),
    "forest_deep_regressor": plain("ensemble", "RandomForestRegressor", score, n_estimators=200),
    "extra_trees": plain("ensemble", "ExtraTreesClassifier", n_estimators=100),
    "tree": plain("tree", "DecisionTreeClassifier", many),
    "gradient_boosting": plain("ensemble", "GradientBoostingClassifier", many),
    "hist_boosting": plain("ensemble", "HistGradientBoostingClassifier"),
    "hist_boosting_regressor": plain("ensemble", "HistGradientBoostingRegressor", score),
    "ada_boost": plain("ensemble", "AdaBoostClassifier"),
    "bagging": plain("ensemble", "BaggingClassifier"),
    "isolation_forest": plain("ensemble", "IsolationForest", None),
    "svc_rbf": plain("svm", "SVC", many, probability=True),
    "svc_poly": plain("svm", "SVC", kernel="poly"),
    "svr": plain("svm", "SVR", score),
    "nu_svc": plain("svm", "NuSVC", many),
    "one_class_svm": plain("svm", "OneClassSVM", None),
    "linear_svc": plain("svm", "LinearSVC", many),
    "knn": plain("neighbors", "KNeighborsClassifier", many),
    "knn_regressor": plain("neighbors", "KNeighborsRegressor", score, weights="distance"),
    "radius_neighbours": plain("neighbors", "RadiusNeighborsRegressor", score, radius=6.0),
    "logistic": plain("linear_model", "LogisticRegression", many),
    "sgd": plain("linear_model", "SGDClassifier", many, loss="modified_huber"),
    "ridge": plain("linear_model", "Ridge", score),
    "bayes": plain("naive_bayes", "GaussianNB", many),
    "bernoulli_bayes": plain("naive_bayes", "BernoulliNB", many),
    "mlp": plain("neural_network", "MLPClassifier", many, max_iter=20),
    "gaussian_process": plain("gaussian_process", "GaussianProcessRegressor", score),
    "gaussian_process_classifier": plain("gaussian_process", "GaussianProcessClassifier"),
    "kmeans": plain("cluster", "KMeans", None, n_clusters=8),
    "mixture": plain("mixture", "GaussianMixture", None, n_components=4),
    "discriminant": plain("discriminant_analysis", "QuadraticDiscriminantAnalysis", many),
    "pca_logistic": plain("linear_model", "LogisticRegression", many, before=(scaler,)),
    "bins_logistic": plain("linear_model", "LogisticRegression", many, before=(quantiles,)),
    "polynomial": lambda path: sk(path, __import__("sklearn.preprocessing").preprocessing.PolynomialFeatures(2)),
    "quantile_transform": lambda path: sk(path, __import__("sklearn.preprocessing").preprocessing.QuantileTransformer(n_quantiles=100)),
    "power_transform": lambda path: sk(path, __import__("sklearn.preprocessing").preprocessing.PowerTransformer()),
    "knn_imputer": lambda path: sk(path, __import__("sklearn.impute").impute.KNNImputer()),
    "tfidf": text("TfidfVectorizer", "linear"),
    "tfidf_pairs": text("TfidfVectorizer", "linear", ngram_range=(1, 2), stop_words=["the", "and"]),
    "tfidf_letters": text("TfidfVectorizer", "linear", analyzer="char", ngram_range=(2, 3)),
    "counts_bayes": text("CountVectorizer", "bayes"),
    "columns": columns,
    "lightgbm": boosted("lightgbm", "LGBMClassifier", many, n_estimators=100, verbose=-1),
    "lightgbm_regressor": boosted("lightgbm", "LGBMRegressor", score, n_estimators=100, verbose=-1),
    "xgboost": boosted("xgboost", "XGBClassifier", many, n_estimators=100),
    "xgboost_regressor": boosted("xgboost", "XGBRegressor", score, n_estimators=100),
    "xgboost_forest": boosted("xgboost", "XGBRFClassifier", labels, n_estimators=50),
}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, wanted = sys.argv[1], sys.argv[2:]
    warnings.filterwarnings("ignore")
    os.makedirs(folder, exist_ok=True)
    for name, make in ALL.items():
        if wanted and name not in wanted:
            continue
        path = os.path.join(folder, name + ".onnx")
        try:
            make(path)
        except Exception as why:
            print("%s: left out: %s: %s" % (name, type(why).__name__, " ".join(str(why).split())[-300:]), flush=True)
            continue
        if not os.path.exists(path[:-4] + "npz"):
            with open(path[:-4] + "shapes", "w") as f:
                f.write("rows%d x=%dx%d\none x=1x%d\n" % (ROWS, ROWS, WIDTH, WIDTH))
        print("%s: %.1f KB" % (name, os.path.getsize(path) / 1e3), flush=True)


if __name__ == "__main__":
    main()
