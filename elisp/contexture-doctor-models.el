;;; contexture-doctor-models.el --- Check that models answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The part of contexture-doctor.el that checks providers.  It asks each
;; provider that the server knows for its models, which shows whether it
;; is reachable and accepts its key.  It also lists those entries of
;; `contexture-providers' that could not be sent to the server.  No key is
;; shown.

;;; Code:

(require 'contexture-provider)
(require 'contexture-probe)
(eval-when-compile (require 'subr-x))

(defvar contexture-doctor-timeout)
(defvar contexture-doctor--address)

(defun contexture-doctor--finding (status text &optional advice &rest actions)
  "Return a finding of STATUS that says TEXT, with ADVICE and ACTIONS."
  (list :status status :text text :advice advice :actions actions))

(defun contexture-doctor--check-models (then)
  "Check all models, and call THEN with the findings."
  (if (or (not (contexture-running-p)) (bound-and-true-p contexture-doctor--address))
      (funcall then (list (contexture-doctor--finding
                           'note "Models are checked once Emacs is connected")))
    (contexture--probe-call
     'list-providers nil contexture-doctor-timeout
     (lambda (outcome providers)
       (if (eq outcome 'answered)
           (contexture-doctor--ask-models providers then)
         (funcall then (list (contexture-doctor--finding
                              'warn "The server does not list its models"
                              (and (stringp providers) providers)))))))))

(defun contexture-doctor--ask-models (providers then)
  "Ask each of PROVIDERS for its models, and call THEN with the findings."
  (let* ((left (length providers))
         (found (make-vector left nil))
         (end (lambda ()
                (funcall then (append (contexture-doctor--untold)
                                      (append found nil)
                                      (unless providers
                                        (list (contexture-doctor--no-provider))))))))
    (if (= left 0) (funcall end)
      (dotimes (place left)
        (let ((provider (nth place providers)))
          (contexture--probe-call
           'list-models (list :provider (plist-get provider :name))
           contexture-doctor-timeout
           (lambda (outcome value)
             (aset found place
                   (contexture-doctor--judge-provider provider outcome value))
             (when (= 0 (cl-decf left)) (funcall end)))))))))

(defun contexture-doctor--judge-provider (provider outcome value)
  "Return the finding on PROVIDER, whose check ended with OUTCOME and VALUE."
  (let* ((model (plist-get provider :model))
         (said (format "%s: %s%s" (plist-get provider :name) model
                       (if (plist-get provider :default) ", the default" "")))
         (models (and (eq outcome 'answered) (plist-get value :models))))
    (cond ((eq outcome 'silent)
           (contexture-doctor--finding
            'warn (format "%s; it does not answer" said)
            (format "Check that you can reach %s."
                    (or (plist-get provider :base-url) "its address"))))
          ((eq outcome 'refused) (contexture-doctor--finding 'warn said value))
          ((or (null models) (cl-some (lambda (it) (string-prefix-p model it)) models))
           (contexture-doctor--finding 'ok said))
          (t (contexture-doctor--finding
              'warn (format "%s; its list of models does not have this one" said)
              (format "It has %s."
                      (mapconcat #'identity (seq-take models 8) ", ")))))))

(defun contexture-doctor--untold ()
  "Return findings on the `contexture-providers' that the server lacks."
  (cl-loop for (name . problem) in contexture-provider--problems
           when (assoc name contexture-providers)
           collect (contexture-doctor--finding
                    'fail (format "%s: the server does not know it" name) problem)))

(defun contexture-doctor--no-provider ()
  "Return the finding that no model is set up."
  (contexture-doctor--finding
   'note "No model is set up; you need one only to talk with it"
   "Set one up here, or with a [[providers]] table in the server's configuration file."
   (cons "Set up a model"
         (lambda () (call-interactively #'contexture-configure-provider)))))

(defun contexture-doctor--judge-state (info)
  "Return findings from INFO on writing the state and on backups."
  (let ((why (plist-get info :read-only))
        (backup (plist-get info :backup)))
    (delq nil
          (list
           (and why
                (contexture-doctor--finding
                 'fail (format "Changes cannot be saved now: %s" why)
                 "Make room on the disk, or make the state folder writable; then repeat
the change.  You need not restart anything."))
           (and backup
                (contexture-doctor--finding
                 'ok (format "The last backup is from %s: %s"
                             (format-time-string
                              "%F %R" (seconds-to-time (plist-get backup :at)))
                             (abbreviate-file-name (plist-get backup :path)))))))))

(provide 'contexture-doctor-models)
;;; contexture-doctor-models.el ends here
