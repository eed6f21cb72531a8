;;; contexture-tools-test-helper.el --- Models that call tools of Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A model that calls tools of Emacs.  The server is real, and so is its
;; model, which follows a script.

;;; Code:

(require 'contexture-conversation-test-helper)
(require 'contexture-tools)

(defmacro contexture-tools-test-with (answers &rest body)
  "Run BODY with a model that says ANSWERS, in a conversation with a project.
The tools that BODY defines are forgotten after it."
  (declare (indent 1) (debug t))
  `(let ((contexture-tools nil)
         (contexture-tools--defined contexture-tools--defined)
         (contexture-tools--calls (make-hash-table)))
     (contexture-conversation-test--with-model ,answers
       (lambda ()
         (contexture-request 'open-session
                             (list :name "talk" :project llm-ert-directory))
         (unwind-protect (progn ,@body)
           (contexture-unwatch #'contexture-tools--told))))))

(defun contexture-tools-test-offered ()
  "Return the names of the tools that the server knows, once it knows what Emacs told."
  (llm-ert-wait-for (null contexture-tools--timer))
  (mapcar (lambda (tool) (plist-get tool :name)) (contexture-request 'list-tools)))

(defun contexture-tools-test-on (&rest tools)
  "Turn TOOLS on everywhere, and wait until the server knows."
  (dolist (tool tools)
    (contexture-tools-on tool t))
  (contexture-tools-test-offered))

(defun contexture-tools-test-ask (&rest params)
  "Ask the model, with PARAMS; return the outcome and the text of each call of a tool."
  (let (answer)
    (contexture-request-async 'chat `(:content "x" ,@params)
                              :success (lambda (result) (setq answer result)))
    (llm-ert-wait-for answer)
    (mapcar (lambda (call)
              (list (contexture--name (plist-get call :outcome)) (plist-get call :text)))
            (plist-get answer :tool-calls))))

(defun contexture-tools-test-calling (tool &optional arguments)
  "Return the answers of a model that calls TOOL with ARGUMENTS, and then ends."
  `(((call ,tool ,(or arguments "{}"))) ("Done.")))

(defun contexture-tools-test-call (number tool &optional project arguments)
  "Let the server's call NUMBER of TOOL with ARGUMENTS for PROJECT arrive."
  (contexture-tools--told 'tool-called (list :call number :tool tool
                                             :arguments (or arguments "{}")
                                             :project project)))

(defun contexture-tools-test-seen (function &rest arguments)
  "Return what FUNCTION, a tool, returns for ARGUMENTS in the test's project."
  (let ((contexture-tool-project llm-ert-directory))
    (apply function arguments)))

(defun contexture-tools-test-seen-later (function &rest arguments)
  "Return what FUNCTION, an asynchronous tool, tells for ARGUMENTS."
  (let (told)
    (apply #'contexture-tools-test-seen function
           (lambda (text &optional problem) (setq told (list text problem))) arguments)
    (llm-ert-wait-for told)
    (or (car told) (cadr told))))

(provide 'contexture-tools-test-helper)
;;; contexture-tools-test-helper.el ends here
