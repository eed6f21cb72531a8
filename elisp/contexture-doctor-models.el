;;; contexture-doctor-models.el --- Whether models can be talked to  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The part of contexture-doctor.el that looks at providers: those that
;; the server knows, each of which is asked which models it has, since
;; that tells whether it is there and takes its key; and those of
;; `contexture-providers' that the server could not be told of.  No key
;; is shown.

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
  "Give THEN which models can be talked to, and what is wrong with others."
  (if (or (not (contexture-running-p)) (bound-and-true-p contexture-doctor--address))
      (funcall then (list (contexture-doctor--finding
                           'note "Models are looked at once Emacs is connected")))
    (contexture--probe-call
     'list-providers nil contexture-doctor-timeout
     (lambda (outcome providers)
       (if (eq outcome 'answered)
           (contexture-doctor--ask-models providers then)
         (funcall then (list (contexture-doctor--finding
                              'warn "The server does not say which models it knows"
                              (and (stringp providers) providers)))))))))

(defun contexture-doctor--ask-models (providers then)
  "Ask each of PROVIDERS which models it has, and give THEN the findings."
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
  "Return the finding on PROVIDER, of which OUTCOME with VALUE was learned."
  (let* ((model (plist-get provider :model))
         (said (format "%s: %s%s" (plist-get provider :name) model
                       (if (plist-get provider :default) ", the one that is asked" "")))
         (models (and (eq outcome 'answered) (plist-get value :models))))
    (cond ((eq outcome 'silent)
           (contexture-doctor--finding
            'warn (format "%s; it does not answer" said)
            (format "See whether %s can be reached."
                    (or (plist-get provider :base-url) "its address"))))
          ((eq outcome 'refused) (contexture-doctor--finding 'warn said value))
          ((or (null models) (cl-some (lambda (it) (string-prefix-p model it)) models))
           (contexture-doctor--finding 'ok said))
          (t (contexture-doctor--finding
              'warn (format "%s; it does not say that it has this model" said)
              (format "It has %s."
                      (mapconcat #'identity (seq-take models 8) ", ")))))))

(defun contexture-doctor--untold ()
  "Return findings on what of `contexture-providers' the server does not know."
  (cl-loop for (name . problem) in contexture-provider--problems
           when (assoc name contexture-providers)
           collect (contexture-doctor--finding
                    'fail (format "%s: the server was not told of it" name) problem)))

(defun contexture-doctor--no-provider ()
  "Return the finding that there is no model to talk to."
  (contexture-doctor--finding
   'note "No model is set up; everything but talking works without"
   "Set one up here, or with a [[providers]] table in the server's configuration file."
   (cons "Set up a model"
         (lambda () (call-interactively #'contexture-configure-provider)))))

(defun contexture-doctor--judge-state (info)
  "Return findings on what INFO says of writing the state, and of backups."
  (let ((why (plist-get info :read-only))
        (backup (plist-get info :backup)))
    (delq nil
          (list
           (and why
                (contexture-doctor--finding
                 'fail (format "Changes cannot be kept now: %s" why)
                 "Make room on the disk, or make the state folder writable; then repeat
the change.  Nothing has to be restarted."))
           (and backup
                (contexture-doctor--finding
                 'ok (format "The last backup is of %s: %s"
                             (format-time-string
                              "%F %R" (seconds-to-time (plist-get backup :at)))
                             (abbreviate-file-name (plist-get backup :path)))))))))

(provide 'contexture-doctor-models)
;;; contexture-doctor-models.el ends here
