;;; contexture-tools-lisp-tests.el --- Tests of the tools in a Lisp image  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; contexture-tools-lisp-real in an Emacs of its own, with SLIME and with
;; SLY; see contexture-lisp-tests.

;;; Code:

(require 'contexture-lisp-tests)

(ert-deftest contexture-tools-lisp-work-with-slime ()
  (contexture-lisp-tests--run-slime "contexture-tools-lisp-real"))

(ert-deftest contexture-tools-lisp-work-with-sly ()
  (contexture-lisp-tests--run-sly "contexture-tools-lisp-real"))

(provide 'contexture-tools-lisp-tests)
;;; contexture-tools-lisp-tests.el ends here
