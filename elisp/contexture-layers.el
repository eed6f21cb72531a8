;;; contexture-layers.el --- Say and choose layers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What users see and choose about the layers of a buffer (see
;; contexture-scope.el): items that moved into a layer, contexts that are in
;; no layer but may be expected there, and where to add or to look.

;;; Code:

(require 'contexture)
(eval-when-compile (require 'subr-x))

(defvar contexture--told-elsewhere nil
  "Names of the contexts about which the user was told that they are elsewhere.")

(defun contexture--tell-opened-layers (opened)
  "Tell what OPENED, a result of `open-layers', took over and left elsewhere.
Each context that is left elsewhere is mentioned once."
  (contexture--note-labels (plist-get opened :elsewhere))
  (when-let* ((taken (plist-get opened :taken-over)))
    (contexture--forget-layers)
    (contexture--message "Contexture: %s" (contexture--taken-over-text taken)))
  (when-let* ((elsewhere (cl-remove-if
                          (lambda (held)
                            (member (plist-get held :manager)
                                    contexture--told-elsewhere))
                          (plist-get opened :elsewhere))))
    (dolist (held elsewhere)
      (push (plist-get held :manager) contexture--told-elsewhere))
    (contexture--message "Contexture: %s" (contexture--elsewhere-text elsewhere))))

(defun contexture--taken-over-text (taken)
  "Return a phrase for TAKEN, the contexts whose items moved into layers."
  (mapconcat (lambda (held)
               (format "moved %s of %s to the %s"
                       (contexture--count (plist-get held :items) "item")
                       (contexture--visible (gethash (plist-get held :manager)
                                                     contexture--labels
                                                     (plist-get held :manager)))
                       (contexture--name (plist-get held :layer))))
             taken "; "))

(defun contexture--elsewhere-text (elsewhere)
  "Return a phrase for ELSEWHERE, the contexts that are in no layer."
  (concat "not in any layer of this buffer: "
          (mapconcat (lambda (held)
                       (format "%s of %s"
                               (contexture--count (plist-get held :items) "item")
                               (contexture--label (plist-get held :manager))))
                     elsewhere ", ")
          "; "
          (substitute-command-keys "C-u \\[contexture-list] shows them")))

(defun contexture--choose-layer (layers)
  "Ask the user for one of LAYERS; return the name of its context."
  (let* ((usual (contexture--layer-to-add layers))
         (names (mapcar (lambda (layer)
                          (cons (contexture--visible (plist-get layer :label))
                                (plist-get layer :manager)))
                        layers))
         (default (car (rassoc usual names)))
         (chosen (completing-read (format-prompt "Add to" default)
                                  (mapcar #'car names) nil t nil nil default)))
    (cdr (assoc chosen names))))

(defun contexture--candidates (entries)
  "Return an alist from labels to the names of the contexts ENTRIES, plists.
Contexts that share a label are shown with their whole names."
  (let ((labels (mapcar (lambda (entry)
                          (or (plist-get entry :label) (plist-get entry :manager)))
                        entries)))
    (cl-loop for entry in entries
             for label in labels
             for manager = (plist-get entry :manager)
             collect (cons (if (and (plist-get entry :label)
                                    (= 1 (cl-count label labels :test #'equal)))
                               label
                             manager)
                           manager))))

(defun contexture--call-each (method calls success failure)
  "Call METHOD once for each of CALLS, lists of parameters, in one batch.
SUCCESS is called with one result made of all, FAILURE with an error."
  (if (null (cdr calls))
      (contexture--request-patiently method (car calls)
                                     :success success :error failure)
    (contexture-request-batch-async
     (mapcar (lambda (params) (cons method params)) calls)
     :success (lambda (outcomes)
                (if-let* ((problem (cl-some (lambda (it) (plist-get it :error))
                                            outcomes)))
                    (funcall failure problem)
                  (funcall success
                           (contexture--one-result
                            (mapcar (lambda (it) (plist-get it :result))
                                    outcomes))))))))

(defun contexture--one-result (results)
  "Return one plist made of RESULTS: numbers are added, lists appended."
  (let ((one (copy-sequence (car results))))
    (dolist (result (cdr results) one)
      (cl-loop for (key value) on result by #'cddr
               for known = (plist-get one key)
               do (setq one (plist-put one key
                                       (cond ((numberp value) (+ value (or known 0)))
                                             ((listp value) (append known value))
                                             (t known))))))))

(provide 'contexture-layers)
;;; contexture-layers.el ends here
