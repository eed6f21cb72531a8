;;; gptel-request-tests.el --- Test gptel with a model written in Lisp  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A sample of a suite for a client of models.  gptel asks a model of the
;; test, through OpenAI's interface or Anthropic's.
;;
;; The tests are skipped unless gptel is in the load path, or in the folders
;; that the environment variables GPTEL_DIR, COMPAT_DIR and TRANSIENT_DIR name.

;;; Code:

(require 'llm-ert)

(dolist (name '("GPTEL_DIR" "COMPAT_DIR" "TRANSIENT_DIR"))
  (when (getenv name)
    (push (expand-file-name (getenv name)) load-path)))
(require 'gptel nil t)
(require 'gptel-openai nil t)
(require 'gptel-anthropic nil t)

(defvar gptel-backend)
(defvar gptel-model)
(defvar gptel-tools)
(defvar gptel-use-curl)
(defvar gptel-use-tools)
(declare-function gptel-make-anthropic "gptel-anthropic" (name &rest args))
(declare-function gptel-make-openai "gptel-openai" (name &rest args))
(declare-function gptel-make-tool "gptel" (&rest slots))
(declare-function gptel-request "gptel-request" (&optional prompt &rest args))

(defmacro gptel-request-tests--with (make answers &rest body)
  "Run BODY with a backend that MAKE makes, and a model that says ANSWERS.
Return what the model was shown."
  (declare (indent 2) (debug t))
  `(progn
     (skip-unless (featurep 'gptel))
     (llm-ert-with-model ,answers
       (let ((gptel-backend (funcall ,make "test" :protocol "http" :stream t
                                     :host (llm-ert-host)
                                     :models '(model) :key "none"))
             (gptel-use-curl (and (executable-find "curl") t))
             (gptel-model 'model))
         ,@body))))

(defun gptel-request-tests--ask (prompt &rest args)
  "Request an answer to PROMPT with ARGS; return what the callback got, in order."
  (let (got done)
    (apply #'gptel-request prompt
           :callback (lambda (response info)
                       (push response got)
                       (unless (and (stringp response) (plist-get info :stream))
                         (setq done (not (consp response)))))
           args)
    (llm-ert-wait-for done :timeout 10)
    (reverse got)))

(ert-deftest gptel-request-returns-the-answer ()
  (dolist (make '(gptel-make-openai gptel-make-anthropic))
    (let ((shown (gptel-request-tests--with make '("Because.")
                   (should (equal (gptel-request-tests--ask "Why?" :system "Be brief.")
                                  '("Because."))))))
      (should (equal (plist-get (car shown) :prompt) "Why?"))
      (should (equal (plist-get (car shown) :system) "Be brief.")))))

(ert-deftest gptel-request-streams ()
  (dolist (make '(gptel-make-openai gptel-make-anthropic))
    (gptel-request-tests--with make '(("Be" (step half) "cause."))
      (skip-unless gptel-use-curl)
      (let (got)
        (gptel-request "Why?" :stream t
          :callback (lambda (response _) (push response got)))
        (llm-ert-await-step 'half)
        (llm-ert-wait-for (equal got '("Be")) :timeout 10)
        (llm-ert-go-on 'half)
        (llm-ert-wait-for (equal got '(t "cause." "Be")) :timeout 10)))))

(ert-deftest gptel-request-tells-of-errors ()
  (gptel-request-tests--with #'gptel-make-openai
      '((error rate-limited "slow down"))
    (let (status)
      (gptel-request "Why?"
        :callback (lambda (_ info) (setq status (plist-get info :status))))
      (llm-ert-wait-for status :timeout 10)
      (should (string-search "429" status)))))

(ert-deftest gptel-request-runs-tools ()
  (let* ((asked nil)
         (shown
          (gptel-request-tests--with #'gptel-make-openai
              '((call "weather" (:city "Bern")) "It rains.")
            (let ((gptel-use-tools t)
                  (gptel-tools
                   (list (gptel-make-tool
                          :name "weather" :description "Tell the weather"
                          :args '((:name "city" :type string :description "City"))
                          :function (lambda (city) (push city asked) "rain")))))
              (should (member "It rains." (gptel-request-tests--ask "And?")))))))
    (should (equal asked '("Bern")))
    (should (equal (plist-get (car (last (plist-get (cadr shown) :messages))) :content)
                   "rain"))))

(provide 'gptel-request-tests)
;;; gptel-request-tests.el ends here
